// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "warpline/base/large_vector.h"
#include "warpline/base/secrets/siphash.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// Sessions by the peer's address and the id that the peer has for the session: for packets that do not name ours. Open
/// addressing, half full at most. A keyed hash of 64 bits stands for both: peers cannot choose collisions.
class PeerTable {
 public:
  PeerTable(std::uint32_t capacity, SipKey key) : entries_(std::bit_ceil(std::size_t{capacity} * 2 + 1)), key_(key) {}

  /// kNone if there is none.
  [[nodiscard]] std::uint32_t find(const PeerAddress& peer, std::uint32_t remote) const {
    const std::uint64_t hash = hash_of(peer, remote);
    std::size_t i = home(hash);
    while (entries_[i].session != kNone && entries_[i].hash != hash) i = next(i);
    return entries_[i].session;
  }

  /// Not in it before; at most `capacity` are.
  void insert(const PeerAddress& peer, std::uint32_t remote, std::uint32_t session) {
    const std::uint64_t hash = hash_of(peer, remote);
    std::size_t i = home(hash);
    while (entries_[i].session != kNone) i = next(i);
    entries_[i] = {hash, session};
  }

  /// Nothing if it is another session's.
  void erase(const PeerAddress& peer, std::uint32_t remote, std::uint32_t session) {
    std::size_t i = home(hash_of(peer, remote));
    while (entries_[i].session != session) {
      if (entries_[i].session == kNone) return;
      i = next(i);
    }
    // Those behind move up if their home allows it (Knuth, TAOCP 3, section 6.4, algorithm R).
    entries_[i].session = kNone;
    for (std::size_t j = next(i); entries_[j].session != kNone; j = next(j)) {
      const std::size_t wanted = home(entries_[j].hash);
      const bool reachable = i <= j ? (i < wanted && wanted <= j) : (i < wanted || wanted <= j);
      if (reachable) continue;
      entries_[i] = entries_[j];
      entries_[j].session = kNone;
      i = j;
    }
  }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t session = kNone;
  };

  [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
  [[nodiscard]] std::size_t home(std::uint64_t hash) const { return hash & (entries_.size() - 1); }
  [[nodiscard]] std::uint64_t hash_of(const PeerAddress& peer, std::uint32_t remote) const {
    std::array<std::uint64_t, 3> words{};
    std::memcpy(words.data(), peer.ip.data(), peer.ip.size());
    words[2] = std::uint64_t{peer.port} << 32 | remote;
    return siphash(key_, words);
  }

  LargeVector<Entry> entries_;
  SipKey key_;
};

}  // namespace warpline::message
