// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../protocol.h"
#include "target.h"
#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

namespace kv {
namespace {

using namespace warpline;

constexpr Nanos kPatience{10'000'000'000};

class WarplineTarget final : public Target {
 public:
  WarplineTarget(std::unique_ptr<transport::UdpSocket> socket, message::Endpoint endpoint,
                 const transport::NanoClock& clock, const message::PeerAddress& server, std::size_t connections,
                 std::size_t outstanding, std::size_t answer_bytes)
      : socket_(std::move(socket)),
        endpoint_(std::move(endpoint)),
        clock_(clock),
        outstanding_(outstanding),
        rooms_(connections * outstanding, std::vector<std::uint8_t>(answer_bytes)) {
    for (std::size_t i = 0; i < connections; ++i)
      sessions_.push_back(endpoint_.connect(server, {}, clock_.now()).session);
  }

  void read(std::size_t which, std::string_view key) override {
    request_.clear();
    append_request(request_, Operation::read, key);
    ask(which);
  }
  void write(std::size_t which, std::string_view key, std::string_view value) override {
    request_.clear();
    append_request(request_, Operation::write, key, value);
    ask(which);
  }
  void scan(std::size_t which, std::string_view key, std::uint32_t count) override {
    request_.clear();
    append_scan(request_, key, count);
    ask(which);
  }

  bool turn(Ended& ended) override {
    if (refused_) return false;
    const Nanos now = clock_.now();
    const bool came = transport::receive_into(endpoint_, *socket_, now);
    message::MessageEvent events[64];
    const std::size_t count = endpoint_.poll(events);
    for (const message::MessageEvent& event : std::span(events).first(count)) {
      if (event.kind == message::EventKind::lost) return false;
      if (event.kind != message::EventKind::response) continue;
      const std::string_view answer{reinterpret_cast<const char*>(event.data), event.length};
      const bool ok =
          event.status == message::MessageStatus::ok && !answer.empty() && answer[0] == static_cast<char>(Outcome::ok);
      ended.ended(event.context, ok, ok ? answer.substr(1) : std::string_view());
    }
    if (transport::transmit_from(endpoint_, *socket_, clock_) == 0 && count == 0 && !came)
      socket_->wait(now, endpoint_.next_deadline());
    return true;
  }

  void each_record(std::string_view scanned, const TakeRecord& take) const override {
    while (const auto record = take_record(scanned)) take(record->key, record->value);
  }

 private:
  void ask(std::size_t which) {
    const Nanos now = clock_.now();
    std::vector<std::uint8_t>& room = rooms_[which];
    const message::ConstBuffer request{reinterpret_cast<const std::uint8_t*>(request_.data()),
                                       static_cast<std::uint32_t>(request_.size())};
    const message::RequestOptions options{
        .context = which, .copy = true, .deadline = Nanos{now.value + kPatience.value}};
    const message::Submitted asked = endpoint_.request(
        sessions_[which / outstanding_], request, {room.data(), static_cast<std::uint32_t>(room.size())}, options, now);
    if (asked.status == message::CallStatus::ok) return;
    // A session that is gone has an event of its own.
    if (asked.status != message::CallStatus::unknown_session && !refused_) {
      std::fprintf(stderr, "a request is not taken (%s): fewer connections, or less outstanding\n",
                   std::string(message::name(asked.status)).c_str());
    }
    refused_ = true;
  }

  std::unique_ptr<transport::UdpSocket> socket_;
  message::Endpoint endpoint_;
  transport::NanoClock clock_;
  std::size_t outstanding_;
  std::vector<message::SessionId> sessions_;
  std::vector<std::vector<std::uint8_t>> rooms_;  ///< for answers
  std::string request_;
  bool refused_ = false;
};

}  // namespace

std::unique_ptr<Target> open_warpline(const SocketAddress& server, std::size_t connections, std::size_t outstanding,
                                      std::size_t answer_bytes) {
  if (outstanding > 64) return std::fprintf(stderr, "a session has at most 64 requests under way\n"), nullptr;
  auto socket = transport::UdpSocket::open({});
  if (!socket) return std::fprintf(stderr, "%s\n", socket.error().message().c_str()), nullptr;
  const transport::NanoClock clock;
  message::EndpointConfig config;
  config.accept = false;
  config.max_sessions = static_cast<std::uint32_t>(connections);
  config.max_messages = static_cast<std::uint32_t>(connections * outstanding);
  auto endpoint = message::Endpoint::create(config, clock.now());
  if (!endpoint) return std::fprintf(stderr, "%s\n", endpoint.error().message().c_str()), nullptr;
  return std::make_unique<WarplineTarget>(std::move(*socket), std::move(*endpoint), clock,
                                          message::peer_address(server), connections, outstanding, answer_bytes);
}

}  // namespace kv
