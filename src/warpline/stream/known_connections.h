// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace warpline::stream {

/// What a SYN offers (RFC 7323, RFC 2018). The peer's maximum segment size does not matter to who sends no bytes.
struct SynOptions {
  bool window_scale = false;
  bool selective = false;  ///< SACK is permitted
  bool timestamps = false;
  bool operator==(const SynOptions&) const = default;
};

/// `KnownConnections` is what several receivers behind one address, as those of a port's queues are, know of each
/// other's connections. A device may bring a segment to another receiver than that of its connection, as the kernel
/// does where net_af_packet's ring is full: who does not know it drops it, but must not reset it. It is a sketch: a
/// connection that there is counts as known, one that there is not only seldom. Where it was a SYN that came to another
/// one, all that follows comes to the right one: who gets the acknowledgement finishes the handshake, and has the
/// connection. Any thread makes any call.
class KnownConnections {
 public:
  /// `hash`: of the connection's ends, the same at all receivers.
  void add(std::uint64_t hash) { place(hash).fetch_add(1, std::memory_order_relaxed); }
  /// Takes one back that was added.
  void remove(std::uint64_t hash) { place(hash).fetch_sub(1, std::memory_order_relaxed); }
  /// Whether a receiver may have it beside the caller, who has added it `own` times: always true if one does.
  [[nodiscard]] bool may_know(std::uint64_t hash, std::uint32_t own = 0) {
    return place(hash).load(std::memory_order_relaxed) > own;
  }

  /// Has the handshake that this SYN began, and `own_initial` answered, finished by whoever claims it first. False if
  /// another one lies in its place: then who got the SYN finishes it.
  [[nodiscard]] bool offer(std::uint64_t hash, std::uint32_t peer_initial, std::uint32_t own_initial,
                           const SynOptions& offered) {
    std::uint64_t none = 0;
    const std::uint64_t options =
        (offered.window_scale ? 1U : 0U) | (offered.selective ? 2U : 0U) | (offered.timestamps ? 4U : 0U);
    return handshake(hash).compare_exchange_strong(none, word(hash, peer_initial, own_initial) | options << kOptions,
                                                   std::memory_order_relaxed);
  }
  /// Returns what was offered, to the one caller that is to finish that handshake or to give it up.
  [[nodiscard]] std::optional<SynOptions> claim(std::uint64_t hash, std::uint32_t peer_initial,
                                                std::uint32_t own_initial) {
    std::uint64_t offered = handshake(hash).load(std::memory_order_relaxed);
    const std::uint64_t options = offered >> kOptions & 7;
    if ((offered ^ options << kOptions) != word(hash, peer_initial, own_initial)) return std::nullopt;
    if (!handshake(hash).compare_exchange_strong(offered, 0, std::memory_order_relaxed)) return std::nullopt;
    return SynOptions{(options & 1) != 0, (options & 2) != 0, (options & 4) != 0};
  }

  /// Whether the caller is the first to open the connection of a handshake that was answered by a cookie: all receivers
  /// accept it. After so many further connections that two of them fall on one place, the older one counts as ended.
  [[nodiscard]] bool open_by_cookie(std::uint64_t hash, std::uint32_t peer_initial, std::uint32_t own_initial) {
    const std::uint64_t opened = word(hash, peer_initial, own_initial);
    return by_cookie(hash).exchange(opened, std::memory_order_relaxed) != opened;
  }
  /// The connection has ended, if a cookie opened it: the same handshake may open another one.
  void end_cookie(std::uint64_t hash, std::uint32_t peer_initial, std::uint32_t own_initial) {
    std::uint64_t opened = word(hash, peer_initial, own_initial);
    by_cookie(hash).compare_exchange_strong(opened, 0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kPlaces = std::size_t{1} << 16;
  static constexpr unsigned kOptions = 32;  ///< their place in the word of a handshake, above our number
  static constexpr unsigned kEnds = 35;     ///< that of what tells one handshake from another

  /// Returns the word of a handshake without options, which is not 0.
  [[nodiscard]] static std::uint64_t word(std::uint64_t hash, std::uint32_t peer_initial, std::uint32_t own_initial) {
    const std::uint64_t ends = (hash ^ peer_initial * 0x9e37'79b9'7f4a'7c15) >> kEnds | 1;
    return ends << kEnds | own_initial;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& handshake(std::uint64_t hash) { return handshakes_[hash & (kPlaces - 1)]; }

  [[nodiscard]] std::atomic<std::uint64_t>& by_cookie(std::uint64_t hash) { return cookies_[hash & (kPlaces - 1)]; }
  [[nodiscard]] std::atomic<std::uint32_t>& place(std::uint64_t hash) { return counts_[hash & (kPlaces - 1)]; }

  std::array<std::atomic<std::uint32_t>, kPlaces> counts_{};
  std::array<std::atomic<std::uint64_t>, kPlaces> handshakes_{};
  std::array<std::atomic<std::uint64_t>, kPlaces> cookies_{};  ///< of connections that a cookie opened
};

}  // namespace warpline::stream
