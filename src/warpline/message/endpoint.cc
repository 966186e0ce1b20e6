// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/endpoint.h"

#include <fmt/core.h>

#include <algorithm>

#include "warpline/base/secrets/draw_secret.h"
#include "warpline/message/internal/endpoint_state.h"
#include "warpline/message/protection.h"

namespace warpline::message {
namespace {

Error wrong(std::string_view what, std::string_view why) {
  return usage_error(fmt::format("an endpoint with {}", what), std::string(why), "change it");
}

}  // namespace

Result<Endpoint> Endpoint::create(const EndpointConfig& config, Nanos now) {
  EndpointConfig c = config;
  if (c.secret == EndpointSecret{}) {
    return usage_error("an endpoint with a secret of zeros",
                       "its cookies could be guessed, and its nonces would come again",
                       "leave EndpointConfig::secret out: one is drawn at random");
  }
  if (!c.secret) WARPLINE_CHECK(draw_secret(c.secret.emplace()));
  if (c.max_sessions == 0 || c.max_sessions > 1U << 24) return wrong("no or too many sessions", "1 to 2^24 it is");
  if (c.endpoints > 256 || (c.endpoints != 0 && c.endpoint >= c.endpoints)) {
    return wrong(fmt::format("number {} of {} at an address", c.endpoint, c.endpoints), "256 have numbers, from 0");
  }
  if (c.max_messages == 0 || c.max_messages >= 1U << 30) return wrong("no or too many messages", "1 to 2^30 it is");
  if (c.max_sent_packets < 256) return wrong("few packets in flight", "max_sent_packets is below 256");
  if (c.datagram_bytes < 256 || c.datagram_bytes > 65507) {
    return wrong(fmt::format("datagrams of {} bytes", c.datagram_bytes), "256 to 65507 it is");
  }
  if (c.base_bytes < 256) return wrong(fmt::format("a base of {} bytes", c.base_bytes), "it is 256 at least");
  if (c.receive_window < 2 * c.datagram_bytes || c.receive_window > 1U << 30) {
    return wrong(fmt::format("a receive window of {} bytes", c.receive_window), "it is from two datagrams to 1 GiB");
  }
  if (c.grants != 0 && c.grants < c.datagram_bytes) {
    return wrong(fmt::format("grants of {} bytes", c.grants), "it is none, or a datagram at least");
  }
  if (c.max_message_bytes > kMaxMessageBytes) return wrong("too long messages", "max_message_bytes is above 2^31 - 1");
  if (c.stranger_packets == 0 || c.stranger_packets > 1'000'000'000) {
    return wrong(fmt::format("{} packets of strangers a second", c.stranger_packets), "1 to 10^9 it is");
  }
  if (c.credits == 0 || c.ack_packets == 0) return wrong("no credits or acknowledgements", "both are at least 1");
  for (const Nanos time : {c.initial_rto, c.min_rto, c.max_rto, c.fixed_rto, c.peer_timeout, c.message_timeout,
                           c.keepalive, c.connect_timeout, c.max_clock_step, c.mtu_raise_time}) {
    if (time.value < 1000 || time.value > 1'000'000'000'000'000) {
      return wrong(fmt::format("a time of {} ns", time.value), "times are from 1 us to 10^6 s");
    }
  }
  if (c.max_ack_delay.value < 0 || c.max_ack_delay.value > 1'000'000'000) {
    return wrong(fmt::format("acknowledgements delayed by {} ns", c.max_ack_delay.value), "0 to 1 s it is");
  }
  PacketProtection::Claim claim;
  if (c.protection != nullptr) {
    if (c.protection->max_sessions() < c.max_sessions) {
      return usage_error(fmt::format("an endpoint with {} sessions", c.max_sessions),
                         fmt::format("its PacketProtection has keys for {}", c.protection->max_sessions()),
                         "make the PacketProtection for as many sessions as EndpointConfig::max_sessions");
    }
    claim = c.protection->claim();
    if (claim == nullptr) {
      return usage_error("an endpoint with the PacketProtection of another endpoint",
                         "both would encrypt different packets with the same key and nonce",
                         "make a PacketProtection for each endpoint");
    }
  }
  return Endpoint(std::make_unique<EndpointState>(c, now), std::move(claim));
}

Endpoint::Endpoint(std::unique_ptr<EndpointState> state, std::shared_ptr<void> protection)
    : protection_(std::move(protection)), state_(std::move(state)) {}
Endpoint::Endpoint(Endpoint&&) noexcept = default;
Endpoint& Endpoint::operator=(Endpoint&&) noexcept = default;
Endpoint::~Endpoint() = default;

Opened Endpoint::connect(const PeerAddress& peer, const SessionOptions& options, Nanos now) {
  state_->enter(now);
  return state_->handshake.connect(peer, options);
}

CallStatus Endpoint::reconnect(SessionId session, Nanos now) {
  state_->enter(now);
  return state_->handshake.reconnect(session);
}

CallStatus Endpoint::close(SessionId session, Nanos now) {
  state_->enter(now);
  return state_->life.close(session);
}

CallStatus Endpoint::forget(SessionId session, Nanos now) {
  state_->enter(now);
  return state_->life.forget(session);
}

void Endpoint::limit_peers(const SessionQuotas& quotas, std::uint32_t stranger_packets) {
  EndpointCore& core = state_->core;
  core.groups.set_quotas(quotas);
  const std::uint32_t burst = EndpointCore::stranger_burst(stranger_packets, core.context.config.max_sessions);
  core.strangers.set_rate(stranger_packets, burst);
  core.proven.set_rate(stranger_packets, burst);
}

void Endpoint::drain(Nanos deadline, Nanos now) {
  state_->enter(now);
  state_->life.drain(deadline == kNever ? kNever : state_->core.context.inner(deadline));
}

bool Endpoint::drained() const { return state_->life.drained(); }

void Endpoint::prefetch(SessionId session) const {
  if (session.index < state_->core.sessions.size()) message::prefetch(state_->core.sessions[session.index]);
}

Submitted Endpoint::request(SessionId session, ConstBuffer message, MutableBuffer response,
                            const RequestOptions& options, Nanos now) {
  state_->enter(now);
  return state_->submissions.request(session, message, response, options);
}

Submitted Endpoint::send(SessionId session, ConstBuffer message, const SendOptions& options, Nanos now) {
  state_->enter(now);
  return state_->submissions.send(session, message, options);
}

CallStatus Endpoint::respond(const MessageId& request, ConstBuffer message, const SendOptions& options, Nanos now) {
  state_->enter(now);
  return state_->submissions.respond(request, message, options);
}

CallStatus Endpoint::cancel(const MessageId& id, Nanos now) {
  state_->enter(now);
  return state_->submissions.cancel(id);
}

CallStatus Endpoint::release(const MessageId& message, Nanos now) {
  state_->enter(now);
  return state_->submissions.release(message);
}

void Endpoint::receive(std::span<const Datagram> datagrams, Nanos now) {
  state_->enter(now);
  state_->receiver.receive(datagrams);
}

void Endpoint::unreachable(std::span<const Unreachable> said, Nanos now) {
  state_->enter(now);
  for (const Unreachable& each : said) state_->handshake.take_unreachable(each);
}

std::size_t Endpoint::transmit(std::span<Outgoing> out, Nanos now) {
  state_->enter(now);
  return state_->sender.transmit(out);
}

void Endpoint::transmitted(std::uint64_t token) { state_->transfers.transmitted(token); }

void Endpoint::advance(Nanos now) {
  state_->enter(now);
  state_->watch.advance();
}

Nanos Endpoint::next_deadline() const { return state_->watch.next_deadline(); }

std::size_t Endpoint::poll(std::span<MessageEvent> events, std::size_t requests) {
  return state_->event_reader.poll(events, requests);
}

const EndpointCounters& Endpoint::counters() const { return state_->core.context.counters; }

EndpointFacts Endpoint::facts() const {
  const EndpointCore& core = state_->core;
  return {.free_sessions = core.sessions.available(),
          .free_messages = core.messages.available(),
          .queued_messages = core.slot_queue.size(),
          .free_sent_packets = core.blocks.available() * SentBlock::kPackets,
          .free_receive_bytes = core.messages.free_bytes()};
}

SessionFacts Endpoint::facts(SessionId session) const { return state_->life.facts(session); }

}  // namespace warpline::message
