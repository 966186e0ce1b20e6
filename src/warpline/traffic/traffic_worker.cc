// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/traffic_worker.h"

#include <algorithm>
#include <utility>

#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include "warpline/base/give_way.h"
#include "warpline/base/time/clock.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"

namespace warpline::traffic {
namespace {

/// The longest that a worker may be off its core and still keep the rate: a scheduler's time slice.
constexpr double kCatchUpSeconds = 0.005;

/// What counts at most of a turn in which nothing came: more than a scheduler's time slice, far less than a drain.
constexpr Nanos kLongestGap{10'000'000};

}  // namespace

TrafficWorker::TrafficWorker(TrafficGroup& group, const Place& place, rte_mempool& pool)
    : group_(group),
      member_(*group.members_[place.number]),
      place_(place),
      burst_(std::min(group.options().burst, kMaxTrafficBurst)),
      generator_(group.plan(), place.number, pool),
      rate_(group.options().rate),
      limiter_(make_limiter()),
      limit_(group.packets_of(place.number)),
      drain_ticks_(nanos_to_ticks(group.options().drain)),
      interrupted_drain_ticks_(std::min(drain_ticks_, nanos_to_ticks(group.options().interrupted_drain))),
      watch_(report_interval({place.port, place.queue}), drain_ticks_),
      passed_(group.options().passed),
      quiet_(nanos_to_ticks(kLongestGap), ticks_now()) {}

RateLimiter TrafficWorker::make_limiter() const {
  const std::uint32_t frame = group_.plan().max_frame_bytes();
  const std::uint32_t depth = std::max(2U * burst_, frames_in(rate_, kCatchUpSeconds, frame));
  return {rate_, ticks_per_second(), depth, frame};
}

TrafficWorker::~TrafficWorker() { rte_pktmbuf_free_bulk(unsent_mbufs_.data() + unsent_at_, unsent_); }

bool TrafficWorker::done() const { return member_.done.load(std::memory_order_acquire); }

void TrafficWorker::run() {
  Turns turns(place_.yields);
  while (!done()) turns.end(poll());
}

bool TrafficWorker::poll() {
  if (place_.announcer != nullptr && place_.announcer->due()) [[unlikely]]
    place_.announcer->send({place_.port, place_.queue});
  const std::uint64_t now = ticks_now();
  const std::uint64_t delivered = member_.counters.delivered.get();
  const std::uint16_t sent = group_.options().sends ? send(now) : std::uint16_t{0};
  const std::uint64_t behind = ticks_now();
  if (sent != 0) {
    member_.tx.end = behind;
  } else if (!generating_ && unsent_ == 0 && !left_) {
    watch_completion(behind);
  }
  const bool receives = group_.options().receives || place_.responder != nullptr;
  const std::uint16_t received = receives ? receive(behind) : std::uint16_t{0};
  if (!group_.options().sends && (group_.stopped() || group_.received_enough())) {
    finish();
  } else if (sent != 0 || member_.counters.delivered.get() != delivered || more_arrived()) {
    quiet_.restart(now);
  } else {
    wait_for_the_rest(now);
  }
  return sent != 0 || received != 0;
}

std::uint16_t TrafficWorker::send(std::uint64_t now) {
  if (group_.stopped() || generator_.next().sequence == limit_) generating_ = false;
  if (unsent_ == 0) {
    const std::uint16_t count = generating_ ? allowance(now) : std::uint16_t{0};
    if (count == 0) return 0;
    const Generator::Filled filled = generator_.fill(unsent_mbufs_.data(), count, now);
    if (filled.packets < count) [[unlikely]]
      member_.counters.no_mbuf.add(1);
    member_.counters.generated.add(filled.packets);
    member_.counters.generated_bytes.add(filled.bytes);
    if (member_.tx.begin == 0) member_.tx.begin = now;
    unsent_at_ = 0;
    unsent_ = filled.packets;
    unsent_bytes_ = filled.bytes;
    if (unsent_ == 0) return 0;
  }
  const std::uint16_t sent = rte_eth_tx_burst(place_.port, place_.queue, unsent_mbufs_.data() + unsent_at_, unsent_);
  unsent_at_ = static_cast<std::uint16_t>(unsent_at_ + sent);
  unsent_ = static_cast<std::uint16_t>(unsent_ - sent);
  const std::uint64_t before = unsent_bytes_;
  unsent_bytes_ = 0;
  if (unsent_ != 0) {
    member_.counters.stalls.add(1);
    for (std::uint16_t i = 0; i < unsent_; ++i) unsent_bytes_ += unsent_mbufs_[unsent_at_ + i]->pkt_len;
  }
  member_.counters.tx.add(sent);
  member_.counters.tx_bytes.add(before - unsent_bytes_);
  return sent;
}

bool TrafficWorker::more_arrived() {
  if (!group_.options().arrived) return false;
  const std::uint64_t before = arrived_;
  arrived_ = group_.options().arrived();
  return arrived_ != before;
}

std::uint64_t TrafficWorker::on_their_way() const {
  if (group_.options().arrived) {
    const std::uint64_t share = group_.share_on_the_way();
    return share - std::min(share, written_off_);
  }
  const std::uint64_t made = generator_.next().sequence;
  return made - std::min(made, group_.returned_of(place_.number) + written_off_);
}

std::uint16_t TrafficWorker::allowance(std::uint64_t now) {
  const FramePlace& next = generator_.next();
  std::uint64_t allowed = std::min<std::uint64_t>(burst_, limit_ - next.sequence);
  if (group_.options().window != 0) {
    allowed =
        std::min(allowed, group_.options().window - std::min<std::uint64_t>(on_their_way(), group_.options().window));
  }
  if (group_.rate().changed(rate_)) [[unlikely]]
    limiter_ = make_limiter();
  if (limiter_.unlimited()) return static_cast<std::uint16_t>(allowed);
  limiter_.refill(now);
  std::uint16_t count = 0;
  for (FramePlace place = next; count < allowed && limiter_.take(group_.plan().frame_bytes(place)); ++count) {
    place = group_.plan().next(place);
  }
  return count;
}

std::uint16_t TrafficWorker::receive(std::uint64_t now) {
  std::array<rte_mbuf*, kMaxTrafficBurst> mbufs;
  const std::uint16_t count =
      rte_eth_rx_burst(place_.port, place_.queue, mbufs.data(), std::max(burst_, port::kLeastRequest));
  if (count == 0) return 0;
  if (member_.rx.begin == 0) member_.rx.begin = now;
  std::uint64_t bytes = 0;
  Tally good;
  std::uint16_t kept = 0;
  std::uint16_t replies = 0;
  std::array<rte_mbuf*, kMaxTrafficBurst> answered;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + 4 < count) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 4], void*));
    const std::uint32_t length = rte_pktmbuf_pkt_len(mbufs[i]);
    bytes += length;
    if (place_.responder != nullptr && is_reply(mbufs[i])) [[unlikely]] {
      answered[replies++] = mbufs[i];
      continue;
    }
    mbufs[kept++] = mbufs[i];
    if (!group_.options().receives) {
      member_.counters.drops.add(Verdict::no_listener);
      continue;
    }
    const Verdict verdict = member_.checker->check(mbufs[kept - 1], now);
    if (verdict == Verdict::forward) [[likely]] {
      good += {1, length};
    } else {
      member_.counters.drops.add(verdict);
    }
  }
  rte_pktmbuf_free_bulk(mbufs.data(), kept);
  if (replies != 0) send_replies(answered.data(), replies);
  member_.rx.end = ticks_now();
  member_.counters.rx.add(count);
  member_.counters.rx_bytes.add(bytes);
  member_.counters.delivered.add(good.packets);
  member_.counters.delivered_bytes.add(good.bytes);
  if (group_.options().window != 0) group_.note_returned(place_.number);
  return count;
}

bool TrafficWorker::is_reply(rte_mbuf* mbuf) const {
  std::array<Segment, kMaxSegments> pieces;
  const std::uint16_t count = memory::segments_of(mbuf, pieces.data());
  return count != 0 && memory::answer(*place_.responder, {pieces.data(), count, rte_pktmbuf_pkt_len(mbuf)}, mbuf);
}

void TrafficWorker::send_replies(rte_mbuf** mbufs, std::uint16_t count) {
  std::uint64_t bytes = 0;
  for (std::uint16_t i = 0; i < count; ++i) bytes += rte_pktmbuf_pkt_len(mbufs[i]);
  const std::uint16_t sent = rte_eth_tx_burst(place_.port, place_.queue, mbufs, count);
  for (std::uint16_t i = sent; i < count; ++i) bytes -= rte_pktmbuf_pkt_len(mbufs[i]);
  rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
  member_.counters.replies.add(sent);
  member_.counters.reply_bytes.add(bytes);
  member_.counters.replies_unsent.add(count - sent);
}

void TrafficWorker::wait_for_the_rest(std::uint64_t now) {
  const bool interrupted = group_.interrupted_.load(std::memory_order_relaxed);
  const std::uint64_t patience = interrupted ? interrupted_drain_ticks_ : drain_ticks_;
  const bool overdue = passed_.all_had_one() && quiet_.look(now) > patience;
  if (generating_) {
    if (group_.options().window != 0 && overdue) written_off_ += on_their_way();
    return;
  }
  if (unsent_ != 0) {
    if (!overdue) return;
    member_.counters.drops.add(Verdict::tx_full, unsent_);
    rte_pktmbuf_free_bulk(unsent_mbufs_.data() + unsent_at_, unsent_);
    unsent_ = 0;
  }
  member_.sending.store(false, std::memory_order_release);
  if (!group_.options().receives && !group_.options().arrived) {
    if (left_) finish();
  } else if (group_.sending()) {
    quiet_.restart(now);  // the drain begins with the last frame that anyone sends
  } else if (overdue || group_.all_came_back()) {
    finish();
  }
}

void TrafficWorker::watch_completion(std::uint64_t now) {
  left_ = member_.tx.begin == 0 || watch_.observe(descriptors_behind({place_.port, place_.queue}), now);
  if (watch_.known()) member_.left = watch_.last_report();
  member_.unreported = watch_.unreported();
}

void TrafficWorker::finish() {
  for (std::uint16_t stream = 0; stream < group_.options().workers; ++stream) {
    member_.ends.push_back(member_.checker->end_of(stream));
  }
  member_.done.store(true, std::memory_order_release);
}

}  // namespace warpline::traffic
