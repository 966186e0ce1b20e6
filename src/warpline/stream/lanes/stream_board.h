// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "warpline/base/device/shared_words.h"
#include "warpline/base/host_device.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

/// How far a stream has come.
struct StreamReach {
  std::uint64_t committed = 0;                    ///< bytes, from the stream's beginning, that have come
  ConnectionState state = ConnectionState::open;  ///< any other one is the end: no byte comes behind those
  [[nodiscard]] WARPLINE_HD bool ended() const { return state != ConnectionState::open; }
};

/// What a lane says of one of its places to consumers of the bytes, in memory of its own. The lane alone writes it.
struct alignas(16) StreamPlace {
  static constexpr unsigned kStateShift = 60;
  static constexpr std::uint64_t kNamed = std::uint64_t{1} << 32;

  std::uint64_t reach =
      0;  ///< bytes committed, and the ConnectionState above them: an end is beyond any number of bytes
  std::uint64_t name = 0;  ///< 0: nobody has the place; else kNamed and the connection's generation

  [[nodiscard]] static constexpr WARPLINE_HD std::uint64_t word_of(std::uint64_t committed, ConnectionState state) {
    return committed | static_cast<std::uint64_t>(state) << kStateShift;
  }
  [[nodiscard]] static constexpr WARPLINE_HD StreamReach reach_of(std::uint64_t word) {
    return {word & ((std::uint64_t{1} << kStateShift) - 1), static_cast<ConnectionState>(word >> kStateShift)};
  }

  /// A connection has the place from now on.
  WARPLINE_HD void begin(std::uint32_t generation) {
    store_release(&reach, 0);
    store_release(&name, kNamed | generation);
  }
  /// The connection has ended so, unless it had ended before.
  WARPLINE_HD void end(ConnectionState state) {
    const StreamReach now = reach_of(load_acquire(&reach));
    if (!now.ended()) store_release(&reach, word_of(now.committed, state));
  }
  /// Nobody has the place.
  WARPLINE_HD void clear() {
    store_release(&name, 0);
    store_release(&reach, 0);
  }
};

/// A consumer's word of how far it is with a connection. It is in one word, so that nobody sees half of it: bytes
/// released, modulo 2^48, of which a ring holds far fewer; whether the consumer is through with the connection, and
/// whether it has seen its end; and the connection's generation, modulo 2^14, so that a word that comes too late is
/// none for the next one.
class ReleaseWord {
 public:
  static constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << 48) - 1;

  explicit WARPLINE_HD ReleaseWord(std::uint64_t word) : word_(word) {}
  WARPLINE_HD ReleaseWord(std::uint32_t generation, std::uint64_t released, bool finished, bool saw_end = false)
      : word_(std::uint64_t{generation & kGenerationMask} << 50 | std::uint64_t{saw_end} << 49 |
              std::uint64_t{finished} << 48 | (released & kBytesMask)) {}

  [[nodiscard]] WARPLINE_HD std::uint64_t value() const { return word_; }
  [[nodiscard]] WARPLINE_HD bool is_of(std::uint32_t generation) const {
    return word_ >> 50 == (generation & kGenerationMask);
  }
  [[nodiscard]] WARPLINE_HD bool finished() const { return (word_ >> 48 & 1) != 0; }
  [[nodiscard]] WARPLINE_HD bool saw_end() const { return (word_ >> 49 & 1) != 0; }
  /// Returns how many bytes it has released beyond `released`, which are those that it had before.
  [[nodiscard]] WARPLINE_HD std::uint64_t since(std::uint64_t released) const {
    return (word_ - released) & kBytesMask;
  }
  /// Returns how many of `committed` bytes it has left, fewer than 2^48.
  [[nodiscard]] WARPLINE_HD std::uint64_t left(std::uint64_t committed) const {
    return (committed - word_) & kBytesMask;
  }

 private:
  static constexpr std::uint32_t kGenerationMask = (1U << 14) - 1;
  std::uint64_t word_;
};

/// What a lane and the consumers of its connections tell each other. Plain addresses, to be handed to kernels by value:
/// valid as long as the receiver that has the lane. The places are in the lane's own memory: of a GPU's lane its GPU
/// reads them, of a host's any thread. Consumers' words are where the receiver's thread reads them without a detour:
/// pinned memory, if the lane is a GPU's.
struct StreamBoard {
  static constexpr std::uint32_t kGroup = 64;

  std::uint32_t count = 0;              ///< of places, one for each connection at once: ConnectionId::index
  std::uint64_t ring_bytes = 0;         ///< of each, a power of two
  const std::uint8_t* rings = nullptr;  ///< of place i from 2 * ring_bytes * i on, each mapped twice
  StreamPlace* places = nullptr;        ///< what the lane says of each
  std::uint64_t* released = nullptr;    ///< of each place: the ReleaseWord of its consumer
  std::uint64_t* groups = nullptr;      ///< of each kGroup places: not 0 if one of their words has changed
  std::uint64_t* changed = nullptr;     ///< not 0 if one of `groups` is

  [[nodiscard]] static constexpr WARPLINE_HD std::uint32_t groups_of(std::uint32_t places) {
    return (places + kGroup - 1) / kGroup;
  }

  /// Says what a consumer has released, and then where to look: the receiver looks at `changed` alone while nothing is.
  WARPLINE_HD void tell(std::uint32_t place, ReleaseWord word) const {
    store_release(&released[place], word.value());
    raise(groups[place / kGroup]);
    raise(*changed);
  }
  /// Calls look(place, word) for each place whose word may have changed since the last call. By the receiver alone, on
  /// the host.
  template <typename Look>
  void take(const Look& look) const {
    if (!lower(*changed)) return;
    for (std::uint32_t group = 0; group < groups_of(count); ++group) {
      if (!lower(groups[group])) continue;
      const std::uint32_t end = group * kGroup + kGroup < count ? group * kGroup + kGroup : count;
      for (std::uint32_t i = group * kGroup; i < end; ++i) look(i, ReleaseWord(load_acquire(&released[i])));
    }
  }

 private:
  /// A GPU has no exchange with host memory that all buses carry, and its store waits until what was before it is seen.
  /// By the host's exchange who lowers the flag sees what all have written who raised it, not only the last one.
  static WARPLINE_HD void raise(std::uint64_t& flag) {
#if defined(__CUDA_ARCH__)
    store_release(&flag, 1);
#else
    std::atomic_ref(flag).exchange(1, std::memory_order_acq_rel);
#endif
  }
  static bool lower(std::uint64_t& flag) {
    const std::atomic_ref word(flag);
    return word.load(std::memory_order_relaxed) != 0 && word.exchange(0, std::memory_order_acq_rel) != 0;
  }
};

}  // namespace warpline::stream
