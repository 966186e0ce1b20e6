// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/stream_receiver.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <variant>

#include "warpline/stream/internal/receiver_core.h"

namespace warpline::stream {
namespace {

constexpr std::uint32_t kMostTries = std::numeric_limits<std::uint8_t>::max();  ///< that a connection counts

Result<void> check(const ReceiverSettings& settings) {
  const auto wrong = [](const char* what, const char* why, const char* fix) { return usage_error(what, why, fix); };
  if (settings.ports.empty()) return wrong("cannot listen", "`ports` is empty", "name one port at least");
  if (std::ranges::find(settings.ports, 0) != settings.ports.end()) {
    return wrong("cannot listen on port 0", "nobody can connect to it", "use ports from 1 on");
  }
  if (settings.connections == 0 || settings.connections > 1U << 20) {
    return wrong("cannot use so many `connections`", "memory is taken for all of them", "use 1 to 1048576");
  }
  if (settings.mtu < (std::holds_alternative<Ipv4Address>(settings.address) ? 576 : 1280)) {
    return wrong("cannot use that `mtu`", "peers may send segments of 576 bytes, over IPv6 of 1280",
                 "use as many or more");
  }
  if (settings.ring_bytes < 64 << 10 || settings.ring_bytes > 1 << 30 || !std::has_single_bit(settings.ring_bytes)) {
    return wrong("cannot use that `ring_bytes`", "places are found by masks, and windows have 30 bits",
                 "use a power of two from 64 KiB to 1 GiB");
  }
  if (settings.delayed_acknowledgement.value < 0 || settings.delayed_acknowledgement.value >= 500'000'000) {
    return wrong("cannot use that `delayed_acknowledgement`", "peers wait for it (RFC 9293, 3.8.6.3)",
                 "use 0 to 499 ms");
  }
  if (settings.first_retransmission.value <= 0) {
    return wrong("cannot use that `first_retransmission`", "it would never end", "use more than 0, such as a second");
  }
  if (settings.retransmissions > kMostTries || settings.keepalive_probes > kMostTries) {
    return wrong("cannot use so many `retransmissions` or `keepalive_probes`", "a connection would never be given up",
                 "use 255 at most");
  }
  if (settings.lane_patience.value <= 0) {
    return wrong("cannot use that `lane_patience`", "every lane would hang", "use more than 0, such as 5 s");
  }
  if (settings.discards && (settings.consumers || settings.populate_rings)) {
    return wrong("cannot use `discards` with `consumers` or `populate_rings`", "no byte is kept in a ring",
                 "leave one out");
  }
  if (settings.keepalive_idle.value < 0 || settings.keepalive_interval.value <= 0) {
    return wrong("cannot use these times of keepalives", "they are negative, or no time apart",
                 "use `keepalive_idle` of 0 or more and `keepalive_interval` of more than 0");
  }
  if (settings.secret == decltype(settings.secret){}) {
    return wrong("cannot use a `secret` of zeros", "with a known one anybody can open connections blindly",
                 "fill it with random bytes, such as those of getrandom()");
  }
  return {};
}

Result<void> check(const ReceiverSettings& settings, const LaneShape& shape) {
  const auto wrong = [](const char* why) { return usage_error("the lane does not fit the receiver", why); };
  if (shape.connections != settings.connections || shape.changes < settings.connections) {
    return wrong("it must have place for as many connections, and for a change of each of them in a burst");
  }
  if (shape.ring_bytes != settings.ring_bytes) return wrong("its rings must be as large");
  if (shape.burst < kMaxSegments || shape.burst > LaneShape::kMostBurst) {
    return wrong("a burst must have from 16 to 512 descriptors");
  }
  if (shape.slots < 2 || !std::has_single_bit(shape.slots)) return wrong("its slots must be a power of two from 2 on");
  return {};
}

}  // namespace

Result<StreamReceiver> StreamReceiver::create(const ReceiverSettings& settings, Nanos now) {
  WARPLINE_CHECK(check(settings));
  if (settings.consumers) {
    return usage_error("cannot have `consumers` beside the receiver's thread", "there is no lane",
                       "create it with one");
  }
  if (settings.lane_acknowledges) {
    return usage_error("cannot use `lane_acknowledges`", "the receiver has no lane", "give it one, or leave it out");
  }
  WARPLINE_TRY(RingMemory rings,
               RingMemory::create(settings.connections, settings.ring_bytes, settings.populate_rings));
  return StreamReceiver(
      std::make_unique<ReceiverCore>(settings, std::make_shared<const RingMemory>(std::move(rings)), nullptr, now));
}

Result<StreamReceiver> StreamReceiver::create(const ReceiverSettings& settings, Nanos now,
                                              std::unique_ptr<SegmentLane> lane) {
  WARPLINE_CHECK(check(settings));
  WARPLINE_CHECK(check(settings, lane->view().shape));
  auto core = std::make_unique<ReceiverCore>(settings, nullptr, std::move(lane), now);
  WARPLINE_CHECK(core->start());
  return StreamReceiver(std::move(core));
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
bool StreamReceiver::has_lane() const { return core_->link() != nullptr; }
std::uint32_t StreamReceiver::room() const { return core_->link()->room(); }
void StreamReceiver::give(FrameRef frame, bool checksums_are_right, void* token, bool has_room) {
  const unsigned marks = (checksums_are_right ? kRightMark : 0U) | (has_room ? kRoomMark : 0U);
  core_->link()->add(frame, static_cast<std::uint8_t>(marks), token);
}
bool StreamReceiver::has_queues() const { return core_->queues() != nullptr; }
std::uint32_t StreamReceiver::take_posted(std::span<PostedFrame> frames) {
  return core_->queues()->take_posted(frames);
}
bool StreamReceiver::collect(OtherFrames* others, Nanos now) { return core_->collect(others, now); }
std::uint32_t StreamReceiver::take_back(std::span<void*> tokens) { return core_->link()->take_back(tokens); }
std::uint64_t StreamReceiver::in_flight() const { return core_->link()->held(); }
std::optional<Error> StreamReceiver::lane_failure(Nanos now) { return core_->lane_failure(now); }
void StreamReceiver::stop_lane() { core_->stop_lane(); }
const StreamBoard& StreamReceiver::board() const { return core_->link()->board(); }
std::shared_ptr<const void> StreamReceiver::rings() const {
  if (core_->link() != nullptr) return core_->link()->lane().ring_memory();
  return core_->ring_memory();
}
const ReceiverCounters& StreamReceiver::counters() const { return core_->counters(); }
std::uint32_t StreamReceiver::connections() const { return core_->connections(); }

}  // namespace warpline::stream
