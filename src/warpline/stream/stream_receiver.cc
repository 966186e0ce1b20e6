// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/stream_receiver.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "warpline/stream/internal/receiver_core.h"

namespace warpline::stream {
namespace {

Result<void> check(const ReceiverSettings& settings) {
  const auto wrong = [](const char* what, const char* why) { return usage_error(what, why); };
  if (settings.ports.empty()) return wrong("no port to listen on", "a receiver needs one at least");
  if (std::ranges::find(settings.ports, 0) != settings.ports.end()) return wrong("port 0", "nobody can connect to it");
  if (settings.connections == 0 || settings.connections > 1U << 20) {
    return wrong("the number of connections", "must be from 1 to 1048576");
  }
  if (settings.ring_bytes < 64 << 10 || settings.ring_bytes > 1 << 30 || !std::has_single_bit(settings.ring_bytes)) {
    return wrong("the ring of a connection", "must be a power of two from 64 KiB to 1 GiB");
  }
  if (settings.delayed_acknowledgement.value < 0 || settings.delayed_acknowledgement.value > 500'000'000) {
    return wrong("the delay of acknowledgements", "must be from 0 to 500 ms (RFC 9293, 3.8.6.3)");
  }
  if (settings.first_retransmission.value <= 0) return wrong("the first retransmission", "must be some time away");
  if (settings.keepalive_idle.value < 0 || settings.keepalive_interval.value <= 0) {
    return wrong("the times of keepalives", "must not be negative, and some time apart");
  }
  if (settings.secret == decltype(settings.secret){}) {
    return wrong("the secret", "must be random: with a known one anybody can open connections blindly");
  }
  return {};
}

}  // namespace

Result<StreamReceiver> StreamReceiver::create(const ReceiverSettings& settings, Nanos now) {
  WARPLINE_CHECK(check(settings));
  WARPLINE_TRY(RingMemory rings,
               RingMemory::create(settings.connections, settings.ring_bytes, settings.populate_rings));
  return StreamReceiver(std::make_unique<ReceiverCore>(settings, std::move(rings), now));
}

StreamReceiver::StreamReceiver(std::unique_ptr<ReceiverCore> core) : core_(std::move(core)) {}
StreamReceiver::StreamReceiver(StreamReceiver&&) noexcept = default;
StreamReceiver& StreamReceiver::operator=(StreamReceiver&&) noexcept = default;
StreamReceiver::~StreamReceiver() = default;

void StreamReceiver::receive(FrameRef frame, bool checksums_are_right, Nanos now) {
  core_->receive(frame, checksums_are_right, now);
}
void StreamReceiver::end_burst(Nanos now) { core_->end_burst(now); }
void StreamReceiver::advance(Nanos now) { core_->advance(now); }
Nanos StreamReceiver::next_deadline() const { return core_->next_deadline(); }
std::uint32_t StreamReceiver::next_reply(std::span<std::uint8_t> out, Nanos now) { return core_->next_reply(out, now); }
std::optional<StreamEvent> StreamReceiver::poll() { return core_->poll(); }
std::optional<StreamView> StreamReceiver::view(ConnectionId connection) const { return core_->view(connection); }
bool StreamReceiver::release(ConnectionId connection, std::uint64_t bytes) { return core_->release(connection, bytes); }
void StreamReceiver::close(ConnectionId connection, Nanos now) { core_->close(connection, now); }
void StreamReceiver::abort(ConnectionId connection, Nanos now) { core_->abort(connection, now); }
const ReceiverCounters& StreamReceiver::counters() const { return core_->counters(); }
std::uint32_t StreamReceiver::connections() const { return core_->connections(); }

}  // namespace warpline::stream
