// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/payload/payload_stage.h"

#include <cstring>
#include <utility>

namespace warpline::stream_port {

using stream::PayloadLane;

PayloadStage::PayloadStage(std::unique_ptr<PayloadLane> lane, Nanos patience)
    : lane_(std::move(lane)), watch_(patience), make_places_(lane_->shape().connections, kNone) {
  makes_.reserve(lane_->shape().connections);
  makers_.reserve(lane_->shape().connections);
}

void PayloadStage::make(stream::ConnectionId connection, std::uint64_t stream, std::uint64_t offset,
                        std::uint64_t length) {
  counters_.made_bytes.add(length);
  std::uint32_t& place = make_places_[connection.index];
  if (place != kNone && makes_[place].stream == stream && makes_[place].offset + makes_[place].length == offset) {
    makes_[place].length += length;
    return;
  }
  const std::uint64_t within = offset & (ring_bytes() - 1);
  const stream::MakeOrder order{lane_->ring(connection.index) + within, stream, offset, length};
  if (place != kNone) {
    makes_[place] = order;  // of a connection that had the place before
    return;
  }
  place = static_cast<std::uint32_t>(makes_.size());
  makes_.push_back(order);
  makers_.push_back(connection.index);
}

stream::FillOrder PayloadStage::fill_order(std::uint8_t* frame, const stream::UnfilledFrame& unfilled) {
  stream::FillOrder order;
  order.to = frame + unfilled.length - unfilled.payload;
  order.from = lane_->ring(unfilled.connection.index) + (unfilled.offset & (ring_bytes() - 1));
  order.checksum = frame + unfilled.checksum;
  order.length = unfilled.payload;
  std::uint16_t checksum = 0;
  std::memcpy(&checksum, order.checksum, sizeof(checksum));
  order.sum = static_cast<std::uint16_t>(~checksum);
  counters_.filled.add(1);
  counters_.filled_bytes.add(unfilled.payload);
  return order;
}

/// A frame without payload waits for those before it: what an acknowledgement of ours says is not to overtake bytes.
bool PayloadStage::write_burst(stream::StreamSender& sender, QueueFrames& frames, Nanos now) {
  std::array<stream::FillOrder, PayloadLane::kFills> fills;
  std::uint32_t filled = 0;
  Burst& burst = bursts_[written_ % PayloadLane::kSlots];
  burst.count = 0;
  burst.sent = 0;
  while (burst.count < burst.frames.size()) {
    stream::UnfilledFrame unfilled;
    std::uint8_t* begin = nullptr;
    rte_mbuf* const mbuf = frames.write_apart([&](std::span<std::uint8_t> out) {
      begin = out.data();
      unfilled = sender.next_unfilled(out, now);
      return unfilled.length;
    });
    if (mbuf == nullptr) break;
    burst.frames[burst.count++] = mbuf;
    if (unfilled.payload != 0) fills[filled++] = fill_order(begin, unfilled);
  }
  if (burst.count == 0 && makes_.empty()) return false;
  if (filled != 0 || !makes_.empty()) {
    // There are no more slots than bursts; a lane that has failed takes none, and watch() finds that.
    static_cast<void>(lane_->submit(makes_, {fills.data(), filled}));
    ++batches_;
    for (const std::uint32_t maker : makers_) make_places_[maker] = kNone;
    makes_.clear();
    makers_.clear();
  }
  burst.batch = batches_;
  ++written_;
  return true;
}

void PayloadStage::release(QueueFrames& frames) {
  const std::uint64_t landed = lane_->landed();
  for (; released_ != written_; ++released_) {
    Burst& burst = bursts_[released_ % PayloadLane::kSlots];
    if (burst.batch > landed) return;
    for (; burst.sent != burst.count; ++burst.sent) {
      if (frames.room() == 0 && !frames.send()) return;
      frames.push_apart(burst.frames[burst.sent]);
    }
  }
}

void PayloadStage::watch(Nanos now) {
  constexpr std::int64_t kBetweenLooks = 1'000'000;
  if (now.value - looked_.value < kBetweenLooks) return;
  looked_ = now;
  const std::uint64_t landed = lane_->landed();
  if (landed == batches_) {
    (void)watch_.hangs(0, now);
    return;
  }
  failure_ = lane_->failure();
  if (!failure_ && watch_.hangs(landed + 1, now)) {
    failure_ = environment_error("payload is put into frames no more", "what does that hangs",
                                 "run `warpline doctor`, or give it longer by --watchdog");
  }
}

bool PayloadStage::send_without_payload(stream::StreamSender& sender, QueueFrames& frames, Nanos now) {
  for (;;) {
    bool has_payload = false;
    rte_mbuf* const mbuf = frames.room() == 0 ? nullptr : frames.write_apart([&](std::span<std::uint8_t> out) {
      const stream::UnfilledFrame unfilled = sender.next_unfilled(out, now);
      has_payload = unfilled.payload != 0;
      return unfilled.length;
    });
    if (mbuf == nullptr) return frames.send();
    if (has_payload) {
      rte_pktmbuf_free(mbuf);
    } else {
      frames.push_apart(mbuf);
    }
  }
}

bool PayloadStage::send(stream::StreamSender& sender, QueueFrames& frames, Nanos now) {
  if (failure_) return send_without_payload(sender, frames, now);
  release(frames);
  bool worked = false;
  while (written_ - released_ < PayloadLane::kSlots && write_burst(sender, frames, now)) worked = true;
  release(frames);
  watch(now);
  return frames.send() || worked;
}

void PayloadStage::close() {
  if (!lane_) return;
  lane_->stop();
  for (; released_ != written_; ++released_) {
    Burst& burst = bursts_[released_ % PayloadLane::kSlots];
    rte_pktmbuf_free_bulk(burst.frames.data() + burst.sent, burst.count - burst.sent);
  }
  lane_.reset();
}

}  // namespace warpline::stream_port
