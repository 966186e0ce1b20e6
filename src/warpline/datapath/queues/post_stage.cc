// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/queues/post_stage.h"

#include <algorithm>
#include <span>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/trace.h"
#include "warpline/memory/mbuf_frame.h"

namespace warpline::datapath {

PostStage::~PostStage() { rte_pktmbuf_free_bulk(mbufs_.data() + first_, end_ - first_); }

std::uint16_t PostStage::poll() {
  const bool timed = sampler_.due();
  if (timed) sampler_.start();
  if (first_ == end_) receive([this](rte_mbuf** mbufs, std::uint16_t room) { return path_.receive(mbufs, room); });
  const std::uint16_t posted = post();
  if (posted == 0) return 0;
  if (timed) sampler_.lap(path_.received.receive, posted);
  sampler_.count_burst();
  return posted;
}

bool PostStage::drain() {
  const auto held = [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.take_held(mbufs, room); };
  for (;;) {
    if (first_ == end_ && path_.holds_any() && !receive(held)) return false;
    if (first_ == end_) break;
    if (post() == 0) return false;
  }
  path_.receive_ended.store(true, std::memory_order_release);
  return true;
}

template <typename Source>
bool PostStage::receive(Source&& source) {
  const gpu::TraceRange range("rx");
  const std::uint32_t free = queues_.room(path_.burst, most_);
  if (free == 0) {
    path_.received.ring_full.add(1);
    return false;
  }
  const std::uint16_t room = budget_.claim(static_cast<std::uint16_t>(std::min<std::uint32_t>(path_.burst, free)));
  first_ = 0;
  end_ = source(mbufs_.data(), room);
  budget_.give_back(room - end_);
  return true;
}

std::uint16_t PostStage::post() {
  const std::uint16_t before = first_;
  while (first_ != end_ && post(mbufs_[first_])) ++first_;
  const auto posted = static_cast<std::uint16_t>(first_ - before);
  if (posted == 0) return 0;
  const gpu::TraceRange range("publish");
  queues_.publish(ticks_now());
  path_.received.bursts.add(1);
  path_.received.packets.add(posted);
  path_.received.bytes.add(bytes_);
  bytes_ = 0;
  return posted;
}

bool PostStage::post(rte_mbuf* mbuf) {
  std::array<Segment, kMaxSegments> pieces;
  std::uint16_t count = 1;
  Verdict preset = Verdict::forward;
  if (mbuf->nb_segs == 1) [[likely]] {
    pieces[0] = {rte_pktmbuf_mtod(mbuf, std::uint8_t*), mbuf->data_len, 0, Verdict::forward};
  } else if (count = memory::segments_of(mbuf, pieces.data()); count == 0) {
    count = 1;
    pieces[0] = {rte_pktmbuf_mtod(mbuf, std::uint8_t*), 0, 0, Verdict::forward};
    preset = Verdict::too_many_segments;
  }
  if (queues_.room(count, queues_.slots()) < count) return false;
  queues_.post(mbuf, std::span(pieces).first(count), preset);
  bytes_ += rte_pktmbuf_pkt_len(mbuf);
  return true;
}

}  // namespace warpline::datapath
