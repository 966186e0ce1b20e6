// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/receiver_core.h"

namespace warpline::stream {
namespace {

ConnectionKey key_of_station(const IpAddress& address) {
  ConnectionKey key;
  store_words(address, key.local);
  return key;
}

std::uint64_t secret_word(const ReceiverSettings& settings, std::uint64_t purpose) {
  return siphash(sip_key(settings.secret), std::array{purpose});
}

constexpr Nanos kWheelTick{1'000'000};
constexpr std::int64_t kLongestRetransmission = 120'000'000'000;  ///< ns; at least 60 s by RFC 6298, 2.5
constexpr std::uint8_t kLargestScale = 14;                        ///< RFC 7323, 2.3: peers take a larger one for this

}  // namespace

ReceiverCore::ReceiverCore(const ReceiverSettings& settings, std::shared_ptr<const RingMemory> rings,
                           std::unique_ptr<SegmentLane> lane, Nanos now)
    : settings_(settings),
      own_{.mac = settings.mac,
           .timestamp_base = static_cast<std::uint32_t>(secret_word(settings, 1)),
           .opening = std::min<std::uint64_t>(settings.ring_bytes / 2, settings.mtu)},
      known_secret_(secret_word(settings, 3)),
      station_(key_of_station(settings.address)),
      ring_memory_(std::move(rings)),
      watch_(settings.lane_patience),
      cookies_(settings.secret),
      table_(settings.connections, secret_word(settings, 0)),
      wheel_(settings.connections, kWheelTick, now),
      touched_(settings.connections),
      events_(settings.connections),
      replies_(settings.connections),
      written_(settings.lane_acknowledges && lane && lane->queues() == nullptr ? settings.connections : 0),
      strangers_(kStrangerReplies, settings.resets_per_second, now, settings.connections),
      cookies_until_{now.value - 1} {
  if (lane && lane->queues() != nullptr) {
    link_ = &queues_.emplace(std::move(lane));
  } else if (lane) {
    link_ = &bursts_.emplace(std::move(lane), settings.consumers);
  }
  stores_ = !link_ && !settings.discards;
  rings_ = link_ ? link_->rings() : ring_memory_->ring(0);
  while (settings_.ring_bytes >> scale_ > 0xffff && scale_ < kLargestScale) ++scale_;
}

Result<void> ReceiverCore::start() {
  if (!link_) return {};
  return link_->lane().start({.own = own_,
                              .secret = secret_word(settings_, 2),
                              .acknowledges = settings_.lane_acknowledges,
                              .discards = settings_.discards});
}

Connection* ReceiverCore::named(ConnectionId id) {
  if (id.index >= table_.capacity()) return nullptr;
  Connection& connection = table_[id.index];
  const bool known = connection.generation == id.generation &&
                     (connection.phase == Phase::established || connection.phase == Phase::over);
  return known ? &connection : nullptr;
}

const Connection* ReceiverCore::named(ConnectionId id) const { return const_cast<ReceiverCore*>(this)->named(id); }

std::optional<StreamEvent> ReceiverCore::poll() {
  while (!events_.empty()) {
    const std::uint32_t index = events_.pop();
    Connection& connection = table_[index];
    connection.wants_event = false;
    if (connection.phase != Phase::established && connection.phase != Phase::over) continue;
    return StreamEvent{
        {index, connection.generation},
        connection.state,
        connection.receive.next - connection.consumed,
        connection.consumed_all && !(connection.end_awaited && connection.state == ConnectionState::open)};
  }
  return std::nullopt;
}

std::optional<StreamView> ReceiverCore::view(ConnectionId id) const {
  const Connection* const connection = named(id);
  if (connection == nullptr) return std::nullopt;
  std::span<const std::uint8_t> bytes;
  if (!settings_.discards) {
    bytes = {ring(id.index) + (connection->consumed & (settings_.ring_bytes - 1)),
             connection->receive.next - connection->consumed};
  }
  return StreamView{{address_of(connection->key.remote), connection->key.remote_port},
                    {address_of(connection->key.local), connection->key.local_port},
                    connection->state,
                    bytes,
                    connection->urgent_end,
                    connection->consumed};
}

bool ReceiverCore::release(ConnectionId id, std::uint64_t bytes) {
  Connection* const connection = named(id);
  if (connection == nullptr || connection->on_board) return false;
  if (bytes > connection->receive.next - connection->consumed) return false;
  consume(*connection, bytes);
  return true;
}

void ReceiverCore::consume(Connection& connection, std::uint64_t bytes) {
  connection.consumed += bytes;
  ReceiveState& state = connection.receive;
  state.window_end = connection.consumed + settings_.ring_bytes;
  tell_lane(connection);
  if (connection.phase != Phase::established || state.end_reached) return;
  // The peer is told when that at least doubles what it may send, and is worth a segment (RFC 9293, 3.8.6.2.2).
  const std::uint64_t announced = connection.peer.announced;
  const std::uint64_t left = announced - std::min(announced, state.next);
  // Without a scale the field holds less than the ring does.
  const std::uint64_t largest = std::min(settings_.ring_bytes, std::uint64_t{0xffff} << connection.peer.scale);
  const std::uint64_t free = std::min(state.window_end - state.next, largest);
  if (left < largest / 2 && free >= 2 * left && free - left >= own_.opening) want_reply(connection);
  // All that the peer had for now is read: it may wait for nothing but the acknowledgement.
  if (state.pushed && connection.consumed == state.next && state.acknowledged != state.next) want_reply(connection);
}

void ReceiverCore::close(ConnectionId id, Nanos now) {
  Connection* const connection = named(id);
  if (connection == nullptr) return;
  if (connection->phase == Phase::over) {
    vacate(*connection);
    return;
  }
  if (!connection->receive.end_reached) return abort(id, now);
  connection->phase = Phase::last_ack;
  change_lane(*connection);
  connection->receive.newest_acknowledgement = connection->send_next();
  connection->attempts = 0;
  connection->retransmit_at = Nanos{now.value + settings_.first_retransmission.value};
  arm(*connection, connection->retransmit_at);
  want_reply(*connection);
}

void ReceiverCore::abort(ConnectionId id, Nanos now) {
  Connection* const connection = named(id);
  if (connection == nullptr) return;
  if (connection->phase == Phase::over) {
    vacate(*connection);
    return;
  }
  reset_peer(*connection, now);
  if (!connection->receive.end_reached) {
    counters_.aborted.add(1);
    connection->state = ConnectionState::reset;
  }
  remove(*connection);
}

Nanos ReceiverCore::next_due(const Connection& connection) const {
  Nanos due = std::min(connection.acknowledge_at, connection.retransmit_at);
  if (connection.phase == Phase::established && settings_.keepalive_idle.value != 0) {
    const std::int64_t patience =
        settings_.keepalive_idle.value + connection.probes * settings_.keepalive_interval.value;
    due = std::min(due, Nanos{connection.last_heard.value + patience});
  }
  return due;
}

void ReceiverCore::arm(Connection& connection, Nanos at) {
  if (at >= connection.timer_at || !connection.is_linked()) return;
  if (connection.timer_at != kNever) wheel_.cancel(connection.timer);
  connection.timer = wheel_.schedule(table_.index_of(connection), at);
  connection.timer_at = at;
}

void ReceiverCore::advance(Nanos now) {
  wheel_.advance(now, [&](std::uint32_t index) {
    Connection& connection = table_[index];
    connection.timer_at = kNever;
    if (connection.is_linked()) do_what_is_due(connection, now);
  });
}

void ReceiverCore::do_what_is_due(Connection& connection, Nanos now) {
  if (connection.acknowledge_at <= now) want_reply(connection);
  if (connection.retransmit_at <= now) {
    if (connection.attempts == settings_.retransmissions) {
      remove(connection);  // what it had is with the application already, or it never was one
      return;
    }
    ++connection.attempts;
    const std::int64_t doubled = settings_.first_retransmission.value
                                 << std::min<std::uint8_t>(connection.attempts, 16);
    connection.retransmit_at = Nanos{now.value + std::min(doubled, kLongestRetransmission)};
    want_reply(connection);
  }
  const bool asks = connection.phase == Phase::established && settings_.keepalive_idle.value != 0;
  const std::int64_t patience = settings_.keepalive_idle.value + connection.probes * settings_.keepalive_interval.value;
  if (asks && connection.last_heard.value + patience <= now.value) {
    if (connection.probes >= settings_.keepalive_probes) {
      if (connection.state == ConnectionState::open) counters_.timed_out.add(1);
      end_by(connection, connection.state == ConnectionState::open ? ConnectionState::timed_out : connection.state);
      return;
    }
    // The next question is an interval away, also if this one comes late, as in a process that was stopped.
    connection.last_heard = Nanos{now.value - patience};
    ++connection.probes;
    connection.wants_probe = true;
    want_reply(connection);
  }
  const Nanos due = next_due(connection);
  if (due != kNever) arm(connection, due);
}

/// The connection has no ends and no timer any more. The caller sets its phase to one that is not linked.
void ReceiverCore::unlink(Connection& connection) {
  if (connection.timer_at != kNever) wheel_.cancel(connection.timer);
  connection.timer_at = connection.acknowledge_at = connection.retransmit_at = kNever;
  table_.unlink(connection);
  tell_others(connection, false);
}

/// The connection ends; the application finds what had come until it closes it.
void ReceiverCore::end_by(Connection& connection, ConnectionState state) {
  unlink(connection);
  connection.phase = Phase::over;
  change_lane(connection);
  connection.state = state;
  want_event(connection);
}

void ReceiverCore::remove(Connection& connection) {
  if (connection.phase == Phase::syn_received) --half_open_;
  if (connection.offered) static_cast<void>(claim_own(connection));
  unlink(connection);
  change_lane(connection);
  vacate(connection);
}

/// The place of a connection that is no longer linked is free, unless a consumer may still read it: then it is when the
/// consumer is through and the lane has taken the name from the board (see let_go()). Consumers never see a connection
/// that ends before the lane is told of it.
void ReceiverCore::vacate(Connection& connection) {
  if (connection.on_board && connection.at_lane) {
    connection.phase = Phase::leaving;
  } else {
    connection.on_board = false;
    table_.release(connection);
  }
}

}  // namespace warpline::stream
