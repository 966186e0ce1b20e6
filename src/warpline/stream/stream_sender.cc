// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/stream_sender.h"

#include <utility>
#include <variant>

#include "warpline/stream/internal/send/sender_core.h"

namespace warpline::stream {
namespace {

Result<void> check(const SenderSettings& settings) {
  const auto wrong = [](const char* what, const char* why, const char* fix) { return usage_error(what, why, fix); };
  if (settings.connections == 0 || settings.connections > 1U << 20) {
    return wrong("cannot use so many `connections`", "memory is taken for all of them", "use 1 to 1048576");
  }
  if (settings.first_port == 0) {
    return wrong("cannot use port 0 as `first_port`", "nobody can answer it", "use ports from 1 on");
  }
  if (settings.last_port < settings.first_port) {
    return wrong("cannot use a `last_port` before `first_port`", "connections need one", "use one behind it");
  }
  if (settings.mtu < (std::holds_alternative<Ipv4Address>(settings.address) ? 576 : 1280)) {
    return wrong("cannot use that `mtu`", "every link has 576 bytes, with IPv6 1280", "use as many or more");
  }
  if (settings.window_bytes < settings.mtu || settings.window_bytes > 1 << 30) {
    return wrong("cannot use that `window_bytes`", "a segment must fit, and windows have 30 bits",
                 "use one MTU to 1 GiB");
  }
  const bool in_order = settings.smallest_timeout.value > 0 && settings.first_timeout >= settings.smallest_timeout &&
                        settings.largest_timeout >= settings.first_timeout;
  if (!in_order) {
    return wrong("cannot use these times of retransmissions", "they are negative, or not in order",
                 "use 0 < `smallest_timeout` <= `first_timeout` <= `largest_timeout`");
  }
  if (settings.connect_timeout.value <= 0 || settings.user_timeout.value <= 0 || settings.time_wait.value < 0 ||
      settings.fin_wait.value < 0) {
    return wrong("cannot use these times after which connections are given up", "they are negative",
                 "use 0 or more, of `connect_timeout` and `user_timeout` more than 0");
  }
  if (settings.secret == decltype(settings.secret){}) {
    return wrong("cannot use a `secret` of zeros", "with a known one anybody can write into connections blindly",
                 "fill it with random bytes, such as those of getrandom()");
  }
  return {};
}

}  // namespace

Result<StreamSender> StreamSender::create(const SenderSettings& settings, const PayloadSource& source, Nanos now) {
  WARPLINE_CHECK(check(settings));
  return StreamSender(std::make_unique<SenderCore>(settings, source, now));
}

StreamSender::StreamSender(std::unique_ptr<SenderCore> core) : core_(std::move(core)) {}
StreamSender::StreamSender(StreamSender&&) noexcept = default;
StreamSender& StreamSender::operator=(StreamSender&&) noexcept = default;
StreamSender::~StreamSender() = default;

std::optional<ConnectionId> StreamSender::connect(const SocketAddress& peer, const MacAddress& next_hop, Nanos now,
                                                  std::uint16_t port) {
  return core_->connect(peer, next_hop, now, port);
}
bool StreamSender::offer(ConnectionId connection, std::uint64_t bytes) { return core_->offer(connection, bytes); }
void StreamSender::close(ConnectionId connection) { core_->close(connection); }
bool StreamSender::set_user_timeout(ConnectionId connection, Nanos timeout, Nanos now) {
  return core_->set_user_timeout(connection, timeout, now);
}
void StreamSender::set_next_hop(const MacAddress& next_hop) { core_->set_next_hop(next_hop); }
void StreamSender::abort(ConnectionId connection, Nanos now) { core_->abort(connection, now); }
void StreamSender::receive(FrameRef frame, bool checksums_are_right, Nanos now) {
  core_->receive(frame, checksums_are_right, now);
}
void StreamSender::advance(Nanos now) { core_->advance(now); }
Nanos StreamSender::next_deadline() const { return core_->next_deadline(); }
std::uint32_t StreamSender::next_frame(std::span<std::uint8_t> out, Nanos now) { return core_->next_frame(out, now); }
UnfilledFrame StreamSender::next_unfilled(std::span<std::uint8_t> out, Nanos now) {
  return core_->next_unfilled(out, now);
}
std::uint32_t StreamSender::frame_bytes() const { return core_->frame_bytes(); }
std::optional<SendEvent> StreamSender::poll() { return core_->poll(); }
std::optional<SendView> StreamSender::view(ConnectionId connection) const { return core_->view(connection); }
const SenderCounters& StreamSender::counters() const { return core_->counters(); }
std::uint32_t StreamSender::connections() const { return core_->connections(); }
std::uint32_t StreamSender::lingering() const { return core_->lingering(); }

}  // namespace warpline::stream
