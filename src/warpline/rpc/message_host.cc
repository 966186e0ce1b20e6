// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/message_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace warpline::rpc {
namespace {

/// The longest that serve() sleeps: stop() may come from where nothing can wake it.
constexpr Nanos kNap{100'000'000};

}  // namespace

MessageHost::MessageHost(transport::Transport& transport, const transport::NanoClock& clock, message::Endpoint endpoint,
                         std::uint32_t answer_bytes)
    : transport_(&transport), clock_(clock), endpoint_(std::move(endpoint)), room_(answer_bytes) {}

Result<MessageHost> MessageHost::open(const Settings& settings) {
  WARPLINE_TRY(auto socket, transport::UdpSocket::open(
                                {.local = settings.local, .datagram_bytes = settings.endpoint.datagram_bytes}));
  WARPLINE_TRY(MessageHost host, over(*socket, settings));
  host.socket_ = std::move(socket);
  return host;
}

Result<MessageHost> MessageHost::over(transport::Transport& transport, const Settings& settings) {
  const transport::NanoClock clock;
  WARPLINE_TRY(message::Endpoint endpoint, message::Endpoint::create(settings.endpoint, clock.now()));
  return MessageHost(transport, clock, std::move(endpoint), settings.answer_bytes);
}

template <typename Handle>
void MessageHost::turn(const Handle& handle, Nanos until) {
  const Nanos now = clock_.now();
  const bool came = transport::receive_into(endpoint_, *transport_, now);
  std::array<message::MessageEvent, 32> events;
  const std::size_t count = transport_->settled() ? endpoint_.poll(events) : 0;
  for (const message::MessageEvent& event : std::span(events).first(count)) handle(event);
  const std::size_t sent = transport::transmit_from(endpoint_, *transport_, clock_);
  if (!came && count == 0 && sent == 0) transport_->wait(now, std::min(until, endpoint_.next_deadline()));
}

void MessageHost::serve(const Handler& handler) {
  const auto handle = [&](const message::MessageEvent& event) {
    const Nanos now = clock_.now();
    if (event.kind == message::EventKind::message) (void)endpoint_.release(event.id, now);
    if (event.kind != message::EventKind::request) return;
    const std::optional<std::size_t> length = handler({event.data, event.length}, room_);
    // Copied, since the room is used again before it has left. Without memory for that the client hears so.
    if (!length ||
        endpoint_.respond(event.id, {room_.data(), static_cast<std::uint32_t>(std::min(*length, room_.size()))},
                          {.copy = true}, now) != message::CallStatus::ok) {
      (void)endpoint_.release(event.id, now);
    }
  };
  while (!stop_->load(std::memory_order_relaxed) && !transport_->failed())
    turn(handle, Nanos{clock_.now().value + kNap.value});
}

Result<message::SessionId> MessageHost::connect(const SocketAddress& server) {
  const message::Opened opened = endpoint_.connect(message::peer_address(server), {}, clock_.now());
  if (opened.status == message::CallStatus::ok) return opened.session;
  return usage_error(fmt::format("session with {}", to_string(server)), std::string(message::name(opened.status)),
                     "raise EndpointConfig::max_sessions");
}

Result<std::string> MessageHost::ask(message::SessionId session, std::string_view request, Nanos patience) {
  std::string answer(room_.size(), '\0');
  const Nanos until{clock_.now().value + patience.value};
  const message::Submitted asked = endpoint_.request(
      session, {reinterpret_cast<const std::uint8_t*>(request.data()), static_cast<std::uint32_t>(request.size())},
      {reinterpret_cast<std::uint8_t*>(answer.data()), static_cast<std::uint32_t>(answer.size())}, {.deadline = until},
      clock_.now());
  if (asked.status != message::CallStatus::ok) {
    return usage_error("request", std::string(message::name(asked.status)), "see EndpointConfig and SessionId");
  }
  std::optional<message::MessageStatus> ended;
  const auto handle = [&](const message::MessageEvent& event) {
    if (event.kind != message::EventKind::response || event.id != asked.id) return;
    ended = event.status;
    if (event.status == message::MessageStatus::ok) answer.resize(event.length);
  };
  // The request's own deadline ends it, unless the transport has failed: then there are no events any more.
  while (!ended && !transport_->failed()) turn(handle, until);
  if (!ended) {
    (void)endpoint_.cancel(asked.id, clock_.now());
    return environment_error("request", "the transport has failed", "open another one");
  }
  if (*ended == message::MessageStatus::ok) return answer;
  return Error{ErrorKind::peer, "request", std::string(message::name(*ended)),
               "see whether the server runs and is reached"};
}

}  // namespace warpline::rpc
