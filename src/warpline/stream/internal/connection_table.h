// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <vector>

#include "warpline/stream/internal/key_places.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {

/// Connections by their ends. Memory is taken by the constructor alone; one thread. `Connection` has `key`,
/// `generation`, `next_free`, a `phase` that may be Phase::free, `timer_at`, which is kNever unless a timer is armed,
/// and renew(key), which makes it as new but for its generation and what queues hold of it.
template <typename Connection>
class ConnectionTable {
 public:
  static constexpr std::uint32_t kNone = KeyPlaces::kNone;

  /// Has place for `capacity` connections. `secret` keeps peers from aiming at one place.
  ConnectionTable(std::uint32_t capacity, std::uint64_t secret)
      : secret_(secret), connections_(capacity), places_(std::bit_ceil(std::size_t{capacity} * 2), kNone) {
    for (std::uint32_t i = 0; i < capacity; ++i) connections_[i].next_free = i + 1 < capacity ? i + 1 : kNone;
  }

  [[nodiscard]] Connection& operator[](std::uint32_t index) { return connections_[index]; }
  [[nodiscard]] const Connection& operator[](std::uint32_t index) const { return connections_[index]; }
  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(connections_.size()); }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t index_of(const Connection& connection) const {
    return static_cast<std::uint32_t>(&connection - connections_.data());
  }

  /// Returns the connection of these ends, or nullptr.
  [[nodiscard]] Connection* find(const ConnectionKey& key) {
    const std::uint32_t index = by_ends().find(key, key_of());
    return index == kNone ? nullptr : &connections_[index];
  }

  /// Returns a new connection of ends that have none, otherwise as when it was made; nullptr if there is no place.
  [[nodiscard]] Connection* add(const ConnectionKey& key) {
    if (free_ == kNone) return nullptr;
    const std::uint32_t index = free_;
    Connection& connection = connections_[index];
    free_ = connection.next_free;
    connection.renew(key);
    by_ends().insert(key, index);
    ++size_;
    return &connection;
  }

  /// Forgets the ends of a connection: they may have another one. It keeps its place until release().
  void unlink(const Connection& connection) { by_ends().erase(index_of(connection), key_of()); }

  /// Frees the place of a connection that is no longer linked and has no timer; its name is void.
  void release(Connection& connection) {
    assert(connection.timer_at == kNever);
    connection.phase = Connection::Phase::free;
    ++connection.generation;
    connection.next_free = free_;
    free_ = index_of(connection);
    --size_;
  }

 private:
  struct KeyOf {
    const Connection* connections;
    [[nodiscard]] const ConnectionKey& operator()(std::uint32_t index) const { return connections[index].key; }
  };

  [[nodiscard]] KeyPlaces by_ends() { return {places_.data(), places_.size() - 1, secret_}; }
  [[nodiscard]] KeyOf key_of() const { return {connections_.data()}; }

  std::uint64_t secret_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> places_;  ///< of KeyPlaces: at most half of them taken
  std::uint32_t free_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace warpline::stream
