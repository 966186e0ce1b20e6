// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/stream_queue.h"

#include <algorithm>
#include <span>
#include <utility>

#include "warpline/memory/mbuf_frame.h"
#include "warpline/stream_port/checksum_flags.h"

namespace warpline::stream_port {

StreamQueue::StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
                         const packet::Responder& responder, std::uint16_t vlan)
    : receiver_(std::move(receiver)), frames_(place, pool, responder, vlan, counters_) {}

void StreamQueue::close() {
  if (receiver_.has_lane()) {
    receiver_.stop_lane();
    free_returned();
    rte_pktmbuf_free_bulk(waiting_.data() + waiting_at_, static_cast<unsigned>(waiting_end_ - waiting_at_));
    waiting_at_ = waiting_end_ = 0;
  }
  frames_.close();
}

bool StreamQueue::receive(Nanos now) {
  if (receiver_.has_lane()) return receive_by_lane(now);
  const std::uint16_t count = frames_.receive([&](FrameRef frame, rte_mbuf* mbuf) {
    if (frames_.answer(frame, mbuf)) [[unlikely]]
      return;
    receiver_.receive(frame, device_found_right(mbuf), now);
    rte_pktmbuf_free(mbuf);
  });
  if (count != 0) receiver_.end_burst(now);
  if (receiver_.next_deadline() <= now) receiver_.advance(now);
  return count != 0;
}

bool StreamQueue::receive_by_lane(Nanos now) {
  bool worked = collect(now);
  lend_waiting();
  while (waiting_at_ == waiting_end_ && receiver_.room() != 0) {
    waiting_at_ = waiting_end_ = 0;
    const auto most = static_cast<std::uint16_t>(std::min<std::uint32_t>(receiver_.room(), QueueFrames::kBurst));
    const auto take = [this](FrameRef frame, rte_mbuf* mbuf) { lend(frame, mbuf); };
    const bool unseen = receiver_.has_queues();
    if ((unseen ? frames_.receive_unseen(take, most) : frames_.receive(take, most)) == 0) break;
    worked = true;
    if (unseen || receiver_.room() == 0) receiver_.end_burst(now);  // to the next burst, if a slot is free
  }
  receiver_.end_burst(now);
  if (receiver_.next_deadline() <= now) receiver_.advance(now);
  return worked;
}

/// A frame in more pieces than there is room for waits, and those behind it.
void StreamQueue::lend(FrameRef frame, rte_mbuf* mbuf) {
  if (waiting_end_ != 0 || frame.count > receiver_.room()) {
    waiting_[waiting_end_++] = mbuf;
  } else {
    give(frame, mbuf);
  }
}

void StreamQueue::give(FrameRef frame, rte_mbuf* mbuf) {
  if (!receiver_.has_queues()) {
    receiver_.give(frame, device_found_right(mbuf), mbuf);
    return;
  }
  const bool own = RTE_MBUF_DIRECT(mbuf) && rte_mbuf_refcnt_read(mbuf) == 1;
  // A tag of priority may have to go: the frame then begins further behind.
  constexpr int kRoom = packet::VlanView::kHeaderLength + stream::StreamReceiver::kReplyBytes;
  const bool has_room = own && mbuf->buf_len - mbuf->data_off >= kRoom;
  receiver_.give(frame, device_says_right(mbuf), mbuf, has_room);
}

void StreamQueue::lend_waiting() {
  Segment segments[kMaxSegments];
  for (; waiting_at_ != waiting_end_; ++waiting_at_) {
    rte_mbuf* const mbuf = waiting_[waiting_at_];
    if (memory::segments_of(mbuf, segments) > receiver_.room()) return;
    give(frame_at(segments), mbuf);
  }
}

bool StreamQueue::collect(Nanos now) {
  if (receiver_.has_queues()) take_posted();
  const bool any = receiver_.collect(this, now);
  free_returned();
  return any;
}

/// Slots of frames that are not taken here are not back.
void StreamQueue::take_posted() {
  std::array<stream::PostedFrame, QueueFrames::kBurst> posted;
  const std::uint32_t count = receiver_.take_posted(std::span(posted).first(frames_.room()));
  for (std::uint32_t i = 0; i < count; ++i) {
    frames_.push(static_cast<rte_mbuf*>(posted[i].token), posted[i].length);
  }
}

void StreamQueue::free_returned() {
  std::array<void*, QueueFrames::kBurst> tokens;
  while (const std::uint32_t count = receiver_.take_back(tokens)) {
    std::array<rte_mbuf*, QueueFrames::kBurst> mbufs;
    std::transform(tokens.begin(), tokens.begin() + count, mbufs.begin(),
                   [](void* token) { return static_cast<rte_mbuf*>(token); });
    rte_pktmbuf_free_bulk(mbufs.data(), count);
  }
}

bool StreamQueue::settle(Nanos now) {
  if (!receiver_.has_lane()) return true;
  (void)collect(now);
  lend_waiting();
  receiver_.end_burst(now);
  return receiver_.in_flight() == 0 && waiting_at_ == waiting_end_;
}

bool StreamQueue::take(FrameRef frame, void* token) {
  auto* const mbuf = static_cast<rte_mbuf*>(token);
  if (receiver_.has_queues() && !frames_.take_tag_off(frame, mbuf)) return true;
  return frames_.answer(frame_at(frame.segments), mbuf);
}

bool StreamQueue::send(Nanos now) {
  while (frames_.write([&](std::span<std::uint8_t> out) { return receiver_.next_reply(out, now); })) {
  }
  return frames_.send();
}

}  // namespace warpline::stream_port
