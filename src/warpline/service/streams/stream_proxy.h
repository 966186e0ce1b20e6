// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "warpline/message/endpoint.h"
#include "warpline/service/streams/stream_relay.h"
#include "warpline/stream_port/run/stream_application.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/transport.h"

namespace warpline::service {

/// Hands connections on to a server of messages: a StreamRelay with its endpoint, and what carries the endpoint's
/// datagrams and gives the time, which outlive it.
class StreamProxy final : public stream_port::StreamApplication {
 public:
  /// The other arguments are as of StreamRelay.
  StreamProxy(message::Endpoint endpoint, transport::Transport& transport, const transport::NanoClock& clock,
              const message::PeerAddress& server, std::uint32_t connections, std::uint64_t ring_bytes)
      : endpoint_(std::move(endpoint)), transport_(transport), clock_(clock), relay_(server, connections, ring_bytes) {}

  bool turn(stream::StreamReceiver& receiver, Nanos now) override;
  [[nodiscard]] bool settled() const override { return relay_.settled(); }
  [[nodiscard]] bool failed() const override { return transport_.failed(); }
  void abandon() override {}  // the rings outlive the endpoint, which is not asked for packets any more
  std::uint32_t abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos now) override;

  [[nodiscard]] const RelayCounters& counters() const { return relay_.counters(); }   ///< any thread
  [[nodiscard]] const message::Endpoint& endpoint() const { return endpoint_; }       ///< its counters: any
  [[nodiscard]] const transport::Transport& transport() const { return transport_; }  ///< likewise

 private:
  message::Endpoint endpoint_;
  transport::Transport& transport_;
  const transport::NanoClock& clock_;
  StreamRelay relay_;
  std::array<message::MessageEvent, 64> events_;
};

}  // namespace warpline::service
