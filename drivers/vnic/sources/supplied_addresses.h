// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vnic/common/counters.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::vnic {

/// The MAC addresses that all frames of a static wire are supplied with, and what became of those that come back. Each
/// reception copies a frame afresh, so every frame sent is judged for itself.
class SuppliedAddresses {
 public:
  /// With frames of different addresses, as of a capture, nothing is judged.
  void add(const std::uint8_t* frame, std::size_t length) {
    Both addresses{};
    std::memcpy(addresses.data(), frame, length < kBytes ? length : kBytes);
    same_ = frames_++ == 0 ? length >= kBytes : same_ && addresses == kept_;
    kept_ = addresses;
    std::memcpy(exchanged_.data(), &kept_[kBytes / 2], kBytes / 2);
    std::memcpy(&exchanged_[kBytes / 2], kept_.data(), kBytes / 2);
  }

  /// Frames sent, until they are counted.
  struct Judged {
    std::uint64_t kept = 0;
    std::uint64_t exchanged = 0;
    std::uint64_t spoiled = 0;
    void count(Counters& counters) const {
      counters.add(Count::tx_kept, kept);
      counters.add(Count::tx_exchanged, exchanged);
      counters.add(Count::tx_spoiled, spoiled);
    }
  };

  void judge(const std::uint8_t* frame, std::size_t length, Judged& judged) const {
    if (!same_) return;
    const auto begins_with = [&](const Both& addresses) {
      return length >= kBytes && std::memcmp(frame, addresses.data(), kBytes) == 0;
    };
    if (begins_with(exchanged_)) {
      ++judged.exchanged;
    } else if (begins_with(kept_)) {
      ++judged.kept;
    } else {
      ++judged.spoiled;
    }
  }

 private:
  static constexpr std::size_t kBytes = 2 * sizeof(MacAddress);
  using Both = std::array<std::uint8_t, kBytes>;

  Both kept_{};
  Both exchanged_{};
  std::uint64_t frames_ = 0;
  bool same_ = false;
};

}  // namespace warpline::vnic
