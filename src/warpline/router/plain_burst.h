// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "warpline/base/address.h"
#include "warpline/datapath/batch.h"

namespace warpline::router {

/// PlainFrames::is_ipv4() of eight packets at a time, where the processor has AVX2 or more.
class PlainBurst {
 public:
  static constexpr unsigned kGroup = 8;
  static constexpr std::uint32_t kReads = 34;  ///< bytes at the begin of every packet's data, whatever its length

  enum class Instructions : std::uint8_t { none, avx2, avx512 };
  /// Returns the best instructions that this processor has.
  [[nodiscard]] static Instructions best();

  explicit PlainBurst(const MacAddress& own, Instructions use = best());

  struct Found {
    std::uint64_t plain = 0;  ///< bit g: all packets of the g-th eight are plain IPv4. Of the others nothing is known
    std::uint64_t bytes = 0;  ///< sum of the packets' lengths, if all are plain
  };
  /// Fetches packets: frames[i] is where mbufs[i] begins, lengths[i] what its first segment has. Returns whether each
  /// is of one segment, as look() needs it.
  static bool fetch(rte_mbuf* const* mbufs, unsigned count, std::uint8_t** frames, std::uint16_t* lengths) {
    constexpr unsigned kSegments = 8 * (offsetof(rte_mbuf, nb_segs) - offsetof(rte_mbuf, data_off));
    std::uint64_t any = 0;
    for (unsigned i = 0; i < count; ++i) {
      std::uint64_t rearm;  // data_off, refcnt, nb_segs, port
      std::memcpy(&rearm, reinterpret_cast<const std::uint8_t*>(mbufs[i]) + offsetof(rte_mbuf, data_off), sizeof rearm);
      any |= rearm;
      frames[i] = static_cast<std::uint8_t*>(mbufs[i]->buf_addr) + static_cast<std::uint16_t>(rearm);
      rte_prefetch0(frames[i]);
      lengths[i] = mbufs[i]->data_len;
    }
    return static_cast<std::uint16_t>(any >> kSegments) == 1;
  }

  /// Looks at the first 8 x groups, a while after fetch(): it reads eight lengths at once, and waits for them if they
  /// were only just written. Of plain packets destinations[i] is where they go, in host order; for the others anything
  /// may be written there.
  [[nodiscard]] Found look(const std::uint8_t* const* frames, const std::uint16_t* lengths, unsigned groups,
                           std::uint32_t* destinations) const {
    return look_ == nullptr ? Found{} : look_(*this, frames, lengths, groups, destinations);
  }
  /// What Found::plain is when all of `groups` >= 1 are.
  [[nodiscard]] static constexpr std::uint64_t all(unsigned groups) { return UINT64_MAX >> (kMostGroups - groups); }

 private:
  static constexpr unsigned kMostGroups = 64;
  static_assert(kMostGroups * kGroup == datapath::kMaxBurst);

  using Look = Found(const PlainBurst& self, const std::uint8_t* const* frames, const std::uint16_t* lengths,
                     unsigned groups, std::uint32_t* destinations);
  static Look look_any, look_avx2, look_avx512;

  /// To be there, from a frame's third byte on; of the IP header with the highest bit of every second byte turned over.
  std::uint8_t expected_[32];
  std::uint16_t first_;  ///< a frame's first two bytes
  Look* look_;
};

}  // namespace warpline::router
