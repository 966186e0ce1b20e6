// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/address.h"
#include "warpline/base/units.h"

namespace warpline::route {

/// A host on the link of a port. IPv4 addresses are mapped into IPv6 (RFC 4291, 2.5.5.2).
struct NeighbourKey {
  Ipv6Address address;
  std::uint16_t port = 0;

  [[nodiscard]] static NeighbourKey of(std::uint16_t port, const Ipv4Address& address);
  [[nodiscard]] static NeighbourKey of(std::uint16_t port, const Ipv6Address& address) { return {address, port}; }
  [[nodiscard]] static NeighbourKey of(std::uint16_t port, const IpAddress& address);
  [[nodiscard]] IpAddress ip() const;
  auto operator<=>(const NeighbourKey&) const = default;
};

/// RFC 4861, 7.3.2, for ARP too. There is no DELAY: a router hears nothing from upper layers, so it asks at once.
enum class NeighbourState : std::uint8_t {
  none,        ///< no such neighbour
  incomplete,  ///< being asked for
  reachable,   ///< has lately said where it is
  stale,       ///< has said so some time ago: still used, and asked again when it is
  failed,      ///< did not answer; asked no more for a while
};

/// All that the data path needs of a neighbour, in one word that is read and written at once.
class NeighbourWord {
 public:
  constexpr explicit NeighbourWord(std::uint64_t bits = 0) : bits_(bits) {}
  constexpr NeighbourWord(std::uint64_t mac, NeighbourState state, bool used, std::uint32_t generation)
      : bits_(mac | std::uint64_t{used} << kUsedBit | static_cast<std::uint64_t>(state) << kStateBit |
              std::uint64_t{generation & kGenerationMask} << kGenerationBit) {}

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  /// Six bytes as they lie in memory, in the lower 48 bits.
  [[nodiscard]] constexpr std::uint64_t mac() const { return bits_ & kMacMask; }
  [[nodiscard]] constexpr NeighbourState state() const { return static_cast<NeighbourState>(bits_ >> kStateBit & 7); }
  /// Since age() last looked.
  [[nodiscard]] constexpr bool used() const { return (bits_ >> kUsedBit & 1) != 0; }
  [[nodiscard]] constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(bits_ >> kGenerationBit);
  }
  /// Reachable and known to be in use: nothing is to be done but to send. One compare.
  [[nodiscard]] constexpr bool good() const { return (bits_ >> kUsedBit & 15) == kGood; }
  [[nodiscard]] constexpr bool has_mac() const {
    return state() == NeighbourState::reachable || state() == NeighbourState::stale;
  }
  bool operator==(const NeighbourWord&) const = default;

 private:
  static constexpr unsigned kUsedBit = 48;
  static constexpr unsigned kStateBit = 49;
  static constexpr unsigned kGenerationBit = 52;
  static constexpr std::uint32_t kGenerationMask = 0xfff;
  static constexpr std::uint64_t kMacMask = (std::uint64_t{1} << kUsedBit) - 1;
  static constexpr std::uint64_t kGood = 1 | static_cast<std::uint64_t>(NeighbourState::reachable) << 1;
  std::uint64_t bits_;
};

/// Times of RFC 4861, 10, and of ours.
struct NeighbourTimes {
  Nanos retransmit{1'000'000'000};  ///< between two requests
  std::uint32_t requests = 3;       ///< before a neighbour has failed
  Nanos reachable{30'000'000'000};  ///< that a confirmation is good for
  Nanos failed{3'000'000'000};      ///< before one that failed may be asked for again
  Nanos unused{60'000'000'000};     ///< before one that nobody needs is forgotten, if it has ever answered
  /// Before one without a MAC address may be replaced by another for which there is no room. None: it is not replaced;
  /// required where neighbours are pinned.
  std::optional<Nanos> replaced{};
};

/// The request to send, if any.
struct NeighbourQuestion {
  bool send = false;
  std::optional<MacAddress> to;  ///< to that station alone; none: to all
};

/// What a message said about a neighbour.
struct NeighbourEvidence {
  std::optional<MacAddress> mac;  ///< none: the one that is known, which the message need not repeat
  bool answers = false;           ///< a question of ours: ARP reply, solicited advertisement
  bool overrides = true;          ///< another MAC address than the one known is believed at once
  bool introduces = false;        ///< a neighbour not known so far: one that asked for us
};

/// The neighbours of all ports, shared by all lcores without locks. Fixed size: buckets of eight, allocated once.
///
/// A slot is claimed by a compare-and-swap of its tag, a hash of the key, so two lcores that add the same neighbour at
/// once get the same slot. Its word carries a generation that changes whenever the slot changes hands: whoever read a
/// word and then finds the same generation has read that neighbour's. Slot kNobody is nobody's and never resolved.
///
/// Time is whatever clock the caller has, the same for all calls.
class NeighbourTable {
 public:
  static constexpr std::uint32_t kNobody = 0;
  static constexpr std::uint32_t kUnresolvedShare = 2;  ///< one part of so many

  /// Room for `capacity` neighbours, rounded up to a power of two, eight at least.
  explicit NeighbourTable(std::uint32_t capacity, const NeighbourTimes& times = {});

  // Any thread, lock-free.

  /// Relaxed: the word says all by itself.
  [[nodiscard]] NeighbourWord word(std::uint32_t slot) const {
    return NeighbourWord(entries_[slot].word.load(std::memory_order_relaxed));
  }
  /// The slot of `key`, or kNobody. One or two cache lines.
  [[nodiscard]] std::uint32_t find(const NeighbourKey& key) const;
  /// The same, adding it as incomplete; kNobody when its bucket is full, or when kUnresolvedShare of the table is taken
  /// by neighbours without a MAC address (RFC 6583, 7.1), and none of its bucket may be replaced: those that are known,
  /// ask for us or are pinned have the rest.
  [[nodiscard]] std::uint32_t find_or_add(const NeighbourKey& key, Nanos now);
  /// A packet goes to that neighbour, or waits for it: notes the use, and says whether the caller, and nobody else, is
  /// to send a request now.
  /// With `may_ask` false nobody sends one: the question is put off to the next use.
  [[nodiscard]] NeighbourQuestion use(std::uint32_t slot, Nanos now, bool may_ask = true);
  /// A message arrived. True if the neighbour has a MAC address now and had none before.
  bool learn(const NeighbourKey& key, const NeighbourEvidence& evidence, Nanos now);
  /// Whose slot it is; nothing if nobody's, or if it changed hands meanwhile.
  [[nodiscard]] std::optional<NeighbourKey> key(std::uint32_t slot) const;
  /// Changes whenever a neighbour gets its first MAC address or fails: whoever waits looks again then.
  [[nodiscard]] std::uint32_t events() const { return events_.load(std::memory_order_relaxed); }

  // One thread, the control thread.

  /// Turns what was confirmed long ago stale, what does not answer failed, and forgets what nobody needs. O(capacity).
  void age(Nanos now);
  /// The slot of a neighbour that stays until unpinned as often as pinned; kNobody when there is no room.
  [[nodiscard]] std::uint32_t pin(const NeighbourKey& key, Nanos now);
  void unpin(std::uint32_t slot);
  /// How many are in `state`.
  [[nodiscard]] std::uint32_t count(NeighbourState state) const;

 private:
  static constexpr std::uint32_t kWays = 8;

  struct alignas(64) Bucket {
    std::atomic<std::uint64_t> tags[kWays];  ///< 0: free
  };
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint64_t> address[2]{};  ///< release: seen with what the word said before
    std::atomic<std::uint32_t> port{0};
    std::atomic<std::uint32_t> asked{0};     ///< requests without an answer
    std::atomic<std::int64_t> ask_again{0};  ///< not before
    std::atomic<std::int64_t> confirmed{0};  ///< reachable: when; failed: since when
    std::atomic<std::int64_t> needed{0};     ///< when age() last saw it in use
    std::uint32_t pins = 0;                  ///< control thread's
  };

  [[nodiscard]] std::uint64_t tag_of(const NeighbourKey& key) const;
  [[nodiscard]] bool is(std::uint32_t slot, const NeighbourKey& key) const;
  [[nodiscard]] std::uint32_t search(const NeighbourKey& key, std::uint64_t tag) const;
  [[nodiscard]] std::uint32_t add(const NeighbourKey& key, std::uint64_t tag, Nanos now);
  bool make_room(std::uint64_t tag, Nanos now);
  void claim(std::uint32_t slot, const NeighbourKey& key, Nanos now);
  bool change(std::uint32_t slot, NeighbourWord& from, NeighbourWord to);
  void age_slot(std::uint32_t slot, std::atomic<std::uint64_t>& tag, Nanos now);
  void announce() { events_.fetch_add(1, std::memory_order_relaxed); }

  NeighbourTimes times_;
  std::uint64_t seed_;
  std::uint32_t buckets_;
  std::unique_ptr<Bucket[]> tags_;
  std::unique_ptr<Entry[]> entries_;  ///< slot = 1 + bucket * kWays + way; 0 is kNobody's
  std::atomic<std::uint32_t> events_{0};
  std::atomic<std::uint32_t> unresolved_{0};  ///< incomplete or failed
};

}  // namespace warpline::route
