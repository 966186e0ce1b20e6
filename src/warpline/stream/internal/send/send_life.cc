// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>

#include "warpline/base/secrets/siphash.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/send/sender_core.h"

namespace warpline::stream {
namespace {

constexpr Nanos kSenderTick{1'000'000};
constexpr std::size_t kSenderStrangers = 256;

ConnectionKey key_of_sender(const IpAddress& address) {
  ConnectionKey key;
  store_words(address, key.local);
  return key;
}

std::uint64_t sender_secret(const SenderSettings& settings, std::uint64_t purpose) {
  return siphash(sip_key(settings.secret), std::array{purpose});
}

/// Segments that fill the window, if the peer's are as large as ours.
std::uint32_t segments_in_flight(const SenderSettings& settings) {
  constexpr std::uint64_t kMostHeaders = 40 + 20 + 12;
  constexpr std::uint64_t kLeast = 16;
  const std::uint64_t segment = settings.mtu - kMostHeaders;
  return static_cast<std::uint32_t>(std::bit_ceil(std::max(settings.window_bytes / segment + 2, kLeast)));
}

/// RFC 6528: a clock of 4 us and what nobody else can tell of these ends.
std::uint32_t initial_number(const SenderSettings& settings, const ConnectionKey& ends, Nanos now) {
  const std::array<std::uint64_t, 6> words = {ends.local[0],
                                              ends.local[1],
                                              ends.remote[0],
                                              ends.remote[1],
                                              std::uint64_t{ends.local_port} << 16 | ends.remote_port,
                                              2};
  const auto hash = static_cast<std::uint32_t>(siphash(sip_key(settings.secret), words));
  return hash + static_cast<std::uint32_t>(now.value / 4000);
}

Nanos after(Nanos now, Nanos wait) { return Nanos{now.value + wait.value}; }

}  // namespace

SenderCore::SenderCore(const SenderSettings& settings, const PayloadSource& source, Nanos now)
    : settings_(settings),
      source_(source),
      station_(key_of_sender(settings.address)),
      table_(settings.connections, sender_secret(settings, 0)),
      ring_segments_(segments_in_flight(settings)),
      rings_(std::make_unique_for_overwrite<SentSegment[]>(std::size_t{ring_segments_} * settings.connections)),
      wheel_(settings.connections, kSenderTick, now),
      turns_(settings.connections),
      events_(settings.connections),
      strangers_(kSenderStrangers, settings.resets_per_second, now, settings.connections),
      timestamp_base_(static_cast<std::uint32_t>(sender_secret(settings, 1))),
      next_port_(settings.first_port) {
  const std::uint32_t ports = settings.last_port - settings.first_port + 1U;
  next_port_ = static_cast<std::uint16_t>(settings.first_port + sender_secret(settings, 3) % ports);
}

std::optional<ConnectionKey> SenderCore::free_ends(const SocketAddress& peer, std::uint16_t port) {
  ConnectionKey key = station_;
  store_words(peer.address, key.remote);
  key.remote_port = peer.port;
  key.local_port = port;
  if (port != 0) return table_.find(key) == nullptr ? std::optional(key) : std::nullopt;
  const std::uint32_t ports = settings_.last_port - settings_.first_port + 1U;
  for (std::uint32_t tried = 0; tried < ports; ++tried) {
    key.local_port = next_port_;
    next_port_ = next_port_ == settings_.last_port ? settings_.first_port : static_cast<std::uint16_t>(next_port_ + 1);
    if (table_.find(key) == nullptr) return key;
  }
  return std::nullopt;
}

std::optional<ConnectionId> SenderCore::connect(const SocketAddress& peer, const MacAddress& next_hop, Nanos now,
                                                std::uint16_t port) {
  if (peer.address.index() != settings_.address.index() || table_.size() == table_.capacity()) return std::nullopt;
  const std::optional<ConnectionKey> ends = free_ends(peer, port);
  if (!ends || !is_another_host(ends->remote, ends->local)) return std::nullopt;
  SendConnection* const connection = table_.add(*ends);
  if (connection == nullptr) return std::nullopt;
  const std::uint32_t index = table_.index_of(*connection);
  connection->phase = Phase::syn_sent;
  connection->peer_mac = next_hop;
  connection->initial = initial_number(settings_, *ends, now);
  connection->segments.reset(rings_.get() + std::size_t{index} * ring_segments_, ring_segments_);
  connection->wants_syn = true;
  connection->user_timeout = settings_.user_timeout;
  connection->progress_at = now;
  connection->heard_at = now;
  connection->retransmit_at = after(now, std::min(settings_.first_timeout, settings_.connect_timeout));
  counters_.started.add(1);
  arm(*connection);
  want_turn(*connection);
  return ConnectionId{index, connection->generation};
}

SendConnection* SenderCore::named(ConnectionId id) {
  if (id.index >= table_.capacity()) return nullptr;
  SendConnection& connection = table_[id.index];
  const bool known = connection.generation == id.generation && connection.phase != Phase::free && !connection.told;
  return known ? &connection : nullptr;
}

bool SenderCore::offer(ConnectionId id, std::uint64_t bytes) {
  SendConnection* const connection = named(id);
  if (connection == nullptr || connection->closing || connection->state > SendState::open) return false;
  connection->offered += bytes;
  if (connection->phase == Phase::open) want_turn(*connection);
  return true;
}

void SenderCore::close(ConnectionId id) {
  SendConnection* const connection = named(id);
  if (connection == nullptr) return;
  connection->closing = true;
  if (connection->phase == Phase::open) want_turn(*connection);
}

bool SenderCore::set_user_timeout(ConnectionId id, Nanos timeout, Nanos now) {
  SendConnection* const connection = named(id);
  if (connection == nullptr || connection->state > SendState::open || timeout.value <= 0) return false;
  connection->user_timeout = timeout;
  if (connection->retransmit_at == kNever) return true;
  connection->retransmit_at =
      std::min(connection->retransmit_at, std::max(gives_up_at(*connection), after(now, kSenderTick)));
  arm(*connection);
  return true;
}

void SenderCore::set_next_hop(const MacAddress& next_hop) {
  for (std::uint32_t i = 0; i < table_.capacity(); ++i) table_[i].peer_mac = next_hop;
}

void SenderCore::abort(ConnectionId id, Nanos now) {
  SendConnection* const connection = named(id);
  if (connection == nullptr) return;
  if (connection->phase == Phase::over) {
    table_.release(*connection);
    return;
  }
  if (connection->phase != Phase::time_wait && connection->phase != Phase::syn_sent) reset_peer(*connection, now);
  if (!connection->fin_acknowledged) counters_.aborted.add(1);
  remove(*connection);
}

std::optional<SendEvent> SenderCore::poll() {
  while (!events_.empty()) {
    const std::uint32_t index = events_.pop();
    SendConnection& connection = table_[index];
    connection.wants_event = false;
    if (connection.phase == Phase::free || connection.told) continue;
    const SendEvent event{{index, connection.generation}, connection.state, connection.bytes_acknowledged()};
    connection.told = connection.state > SendState::open;
    if (connection.phase == Phase::over) table_.release(connection);
    return event;
  }
  return std::nullopt;
}

std::optional<SendView> SenderCore::view(ConnectionId id) const {
  const SendConnection* const connection = const_cast<SenderCore*>(this)->named(id);
  if (connection == nullptr) return std::nullopt;
  const SendConnection& c = *connection;
  return SendView{c.key.local_port,
                  c.state,
                  c.offered,
                  std::min(c.next, c.offered),
                  c.bytes_acknowledged(),
                  c.in_flight(),
                  c.congestion.bytes(),
                  c.window_end - std::min(c.window_end, c.acknowledged),
                  c.round_trip.smoothed()};
}

/// RFC 6298, 2, 5.5 and 5.7.
Nanos SenderCore::timeout_of(const SendConnection& connection) const {
  constexpr Nanos kGranularity = kSenderTick;
  constexpr Nanos kAfterLostSyn{3'000'000'000};  // RFC 6298, 5.7
  Nanos timeout = settings_.first_timeout;
  if (connection.syn_lost) timeout = std::max(timeout, kAfterLostSyn);
  if (connection.round_trip.known()) {
    timeout =
        std::clamp(connection.round_trip.timeout(kGranularity), settings_.smallest_timeout, settings_.largest_timeout);
  }
  const int doublings = std::min<int>(connection.attempts, 10);
  return std::min(Nanos{timeout.value << doublings}, settings_.largest_timeout);
}

/// RFC 8985, 7.2: when a segment is sent to learn whether the last ones arrived.
void SenderCore::watch_tail(SendConnection& connection, Nanos now) {
  constexpr std::int64_t kPeersDelay = 200'000'000;  // WCDelAckT
  constexpr std::int64_t kSoonest = 2'000'000;
  connection.tail_probe_at = kNever;
  const SentSegments& segments = connection.segments;
  const bool undisturbed = connection.recovery == Recovery::none && !segments.empty() &&
                           segments.size() == segments.count(SegmentFate::flying);
  if (!connection.selective || connection.tail_probed || !undisturbed) return;
  std::int64_t wait = settings_.first_timeout.value;
  if (connection.round_trip.known()) {
    wait = std::max(2 * connection.round_trip.smoothed().value, kSoonest);
    if (segments.size() == 1) wait += kPeersDelay;
  }
  if (now.value + wait < connection.retransmit_at.value) connection.tail_probe_at = Nanos{now.value + wait};
}

/// RFC 9293, 3.8.6.1: who has bytes, and nothing on its way that would be answered, asks for the window.
void SenderCore::watch_window(SendConnection& connection, Nanos now) {
  const bool waits =
      connection.phase == Phase::open && connection.segments.empty() && connection.next < connection.offered;
  if (!waits || connection.retransmit_at != kNever) return;
  connection.progress_at = now;
  connection.retransmit_at = after(now, timeout_of(connection));
  arm(connection);
}

void SenderCore::arm(SendConnection& connection) {
  const Nanos due = std::min(std::min(connection.retransmit_at, connection.tail_probe_at),
                             std::min(connection.reordering_at, connection.expire_at));
  if (due >= connection.timer_at) return;
  if (connection.timer_at != kNever) wheel_.cancel(connection.timer);
  connection.timer = wheel_.schedule(table_.index_of(connection), due);
  connection.timer_at = due;
}

void SenderCore::advance(Nanos now) {
  wheel_.advance(now, [&](std::uint32_t index) {
    SendConnection& connection = table_[index];
    connection.timer_at = kNever;
    do_what_is_due(connection, now);
  });
}

void SenderCore::do_what_is_due(SendConnection& connection, Nanos now) {
  if (connection.expire_at <= now) {
    if (connection.told) {
      remove(connection);
    } else {
      end_by(connection, connection.state);
    }
    return;
  }
  if (connection.reordering_at <= now && detect_losses(connection, now)) begin_recovery(connection);
  if (connection.tail_probe_at <= now) {
    connection.tail_probe_at = kNever;
    connection.wants_tail_probe = true;
    connection.retransmit_at = after(now, timeout_of(connection));
    want_turn(connection);
  }
  if (connection.retransmit_at <= now) take_timeout(connection, now);
  if (connection.phase != Phase::free && connection.phase != Phase::over) arm(connection);
}

/// When it ends if the peer says nothing until then that it should not.
Nanos SenderCore::gives_up_at(const SendConnection& connection) const {
  const bool opening = connection.phase == Phase::syn_sent || connection.phase == Phase::syn_received;
  if (opening) return after(connection.progress_at, settings_.connect_timeout);
  // Who answers that it has no room is not gone (RFC 9293, 3.8.6.1).
  const bool closed = connection.segments.empty() || connection.window_end <= connection.acknowledged;
  const Nanos since = closed ? std::max(connection.heard_at, connection.progress_at) : connection.progress_at;
  const bool ever = connection.user_timeout.value < kNever.value - since.value;
  return ever ? after(since, connection.user_timeout) : kNever;
}

/// When what is sent now is sent again, or the connection is given up: no later than that.
Nanos SenderCore::times_out_at(const SendConnection& connection, Nanos now) const {
  return std::min(after(now, timeout_of(connection)), std::max(gives_up_at(connection), after(now, kSenderTick)));
}

void SenderCore::take_timeout(SendConnection& connection, Nanos now) {
  connection.retransmit_at = kNever;
  const bool opening = connection.phase == Phase::syn_sent || connection.phase == Phase::syn_received;
  const bool asks = connection.segments.empty();
  const Nanos end = gives_up_at(connection);
  if (now >= end) {
    counters_.timed_out.add(1);
    end_by(connection, SendState::timed_out);
    return;
  }
  if (!opening && !asks) {
    time_out(connection, now);
  } else {
    if (!opening && connection.next >= connection.offered) return;
    if (connection.attempts < 255) ++connection.attempts;
    connection.retransmit_at = after(now, timeout_of(connection));
    if (opening) {
      counters_.timeouts.add(1);
      connection.wants_syn = true;
    } else if (connection.window_end > connection.next) {
      connection.override_small = true;
    } else {
      connection.wants_window_probe = true;
    }
    want_turn(connection);
  }
  connection.retransmit_at = std::min(connection.retransmit_at, std::max(end, after(now, kSenderTick)));
}

void SenderCore::establish(SendConnection& connection, Nanos now) {
  connection.phase = Phase::open;
  connection.state = SendState::open;
  connection.wants_syn = false;
  if (connection.attempts != 0) {
    connection.syn_lost = true;
    connection.congestion.on_lost_syn();
    connection.attempts = 0;
  }
  connection.retransmit_at = kNever;
  connection.progress_at = now;
  connection.heard_at = now;
  counters_.opened.add(1);
  want_acknowledgement(connection);
  want_event(connection);
}

/// Enters what the segment just taken did to the connection's end (RFC 9293, 3.6).
void SenderCore::note_end(SendConnection& connection, Nanos now) {
  if (!connection.fin_acknowledged) return;
  if (connection.state == SendState::open) {
    connection.state = SendState::finished;
    connection.expire_at = after(now, settings_.fin_wait);
    counters_.finished.add(1);
    ++lingering_;
    want_event(connection);
  }
  if (connection.peer_ended && connection.phase == Phase::open) {
    connection.phase = Phase::time_wait;
    // LAST-ACK ends at once: the peer has heard all.
    connection.expire_at = connection.peer_was_first ? now : after(now, settings_.time_wait);
  }
  arm(connection);
}

void SenderCore::forget_timer(SendConnection& connection) {
  if (connection.timer_at != kNever) wheel_.cancel(connection.timer);
  connection.timer_at = kNever;
}

/// The connection ends; its place is kept until the application has heard of that.
void SenderCore::end_by(SendConnection& connection, SendState state) {
  if (connection.told) {
    remove(connection);
    return;
  }
  forget_timer(connection);
  connection.retransmit_at = kNever;
  connection.tail_probe_at = kNever;
  connection.reordering_at = kNever;
  connection.expire_at = kNever;
  if (connection.fin_acknowledged) --lingering_;
  table_.unlink(connection);
  connection.phase = Phase::over;
  connection.state = state;
  want_event(connection);
}

void SenderCore::remove(SendConnection& connection) {
  forget_timer(connection);
  if (connection.fin_acknowledged) --lingering_;
  table_.unlink(connection);
  table_.release(connection);
}

}  // namespace warpline::stream
