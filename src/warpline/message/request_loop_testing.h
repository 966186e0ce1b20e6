// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/message/endpoint.h"

// Two endpoints back to back in memory: what the protocol costs, without any network. Whatever goes wrong ends the
// process.

namespace warpline::message {

/// `LoopEnd` is an endpoint and the packets that it sent last.
class LoopEnd {
 public:
  LoopEnd(EndpointConfig config, std::uint8_t number) : memory_(kPackets * kRoom), out_(kPackets), in_(kPackets) {
    config.secret.emplace().fill(number);
    address = peer_address(Ipv4Address{{10, 0, 0, number}}, 1000);
    auto made = Endpoint::create(config, Nanos{0});
    if (!made) std::abort();
    endpoint.emplace(std::move(made).value());
    for (std::size_t i = 0; i < kPackets; ++i) {
      out_[i].head = memory_.data() + i * kRoom;
      out_[i].head_capacity = kRoom;
    }
  }

  /// Packets of this end arrive at `peer`; false if there were none.
  bool send_to(LoopEnd& peer, Nanos now) {
    const std::size_t count = endpoint->transmit(out_, now);
    for (std::size_t i = 0; i < count; ++i) {
      in_[i].head = out_[i].head;
      in_[i].head_length = out_[i].head_length;
      in_[i].rest = const_cast<std::uint8_t*>(out_[i].payload);
      in_[i].rest_length = out_[i].payload_length;
      in_[i].from = address;
    }
    peer.endpoint->receive({in_.data(), count}, now);
    for (std::size_t i = 0; i < count; ++i) {
      if (out_[i].token != 0) endpoint->transmitted(out_[i].token);
    }
    packets += count;
    return count != 0;
  }

  std::optional<Endpoint> endpoint;
  PeerAddress address;
  std::uint64_t packets = 0;

 private:
  static constexpr std::size_t kPackets = 32;
  static constexpr std::uint32_t kRoom = 2048;

  std::vector<std::uint8_t> memory_;
  std::vector<Outgoing> out_;
  std::vector<Datagram> in_;
};

/// `RequestLoop` keeps requests in flight, and responses of their length, with both ends on the calling thread.
class RequestLoop {
 public:
  struct Shape {
    std::uint32_t bytes;        ///< of a request, and of its response
    std::uint32_t sessions;     ///< which take turns
    std::uint32_t outstanding;  ///< requests in flight, in all sessions together
    CcKind control = CcKind::swift;
  };

  explicit RequestLoop(const Shape& shape)
      : client_(config_for(shape), 1),
        server_(config_for(shape), 2),
        message_(shape.bytes, 0x5a),
        response_(shape.bytes) {
    for (std::uint32_t i = 0; i < shape.sessions; ++i) {
      sessions_.push_back(client_.endpoint->connect(server_.address, {}, now_).session);
      bool any = true;
      while (any) {
        any = client_.send_to(server_, now_);
        any |= server_.send_to(client_, now_);
      }
      while (client_.endpoint->poll(events_) != 0 || server_.endpoint->poll(events_) != 0) {
      }
    }
    for (std::uint32_t i = 0; i < shape.outstanding; ++i) ask();
    run(2ULL * std::max(shape.outstanding, shape.sessions));
    if (response_ != message_) std::abort();
  }
  RequestLoop(const RequestLoop&) = delete;
  RequestLoop& operator=(const RequestLoop&) = delete;

  /// Goes on until so many more requests have their response, or a few more than that. Returns how many.
  std::uint64_t run(std::uint64_t requests) {
    const std::uint64_t before = done_;
    while (done_ - before < requests) step();
    return done_ - before;
  }

  /// The packets that both ends have sent.
  [[nodiscard]] std::uint64_t packets() const { return client_.packets + server_.packets; }
  /// The probes for lost packets that both ends have sent.
  [[nodiscard]] std::uint64_t probes() const {
    return client_.endpoint->counters().probes.get() + server_.endpoint->counters().probes.get();
  }

 private:
  static EndpointConfig config_for(const Shape& shape) {
    EndpointConfig config;
    config.max_sessions = shape.sessions;
    config.max_messages = std::max(4096U, 2 * shape.sessions);
    config.max_sent_packets = std::max(1U << 16, 64 * shape.sessions);
    config.receive_bytes = 64U << 20;
    config.cc.kind = shape.control;
    return config;
  }

  void ask() {
    const auto length = static_cast<std::uint32_t>(message_.size());
    const SessionId session = sessions_[next_++ % sessions_.size()];
    const Submitted made = client_.endpoint->request(session, {message_.data(), length, false},
                                                     {response_.data(), length, false}, {}, now_);
    if (made.status != CallStatus::ok) std::abort();
  }

  void step() {
    now_.value += 2000;
    client_.endpoint->advance(now_);
    server_.endpoint->advance(now_);
    client_.send_to(server_, now_);
    for (std::size_t n; (n = server_.endpoint->poll(events_)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        if (events_[i].kind != EventKind::request) continue;
        static_cast<void>(
            server_.endpoint->respond(events_[i].id, {events_[i].data, events_[i].length, false}, {}, now_));
      }
    }
    server_.send_to(client_, now_);
    for (std::size_t n; (n = client_.endpoint->poll(events_)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        if (events_[i].kind != EventKind::response || events_[i].status != MessageStatus::ok) std::abort();
        ++done_;
        ask();
      }
    }
  }

  LoopEnd client_;
  LoopEnd server_;
  Nanos now_{0};
  std::vector<SessionId> sessions_;
  std::size_t next_ = 0;  ///< counts the requests; whose turn it is
  std::vector<std::uint8_t> message_;
  std::vector<std::uint8_t> response_;
  MessageEvent events_[64];
  std::uint64_t done_ = 0;
};

}  // namespace warpline::message
