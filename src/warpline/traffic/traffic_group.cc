// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/traffic_group.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "warpline/base/time/clock.h"

namespace warpline::traffic {

TrafficGroup::TrafficGroup(TrafficPlan plan, const Options& options)
    : plan_(std::move(plan)), options_(options), rate_(options.rate) {
  Checker::Options check;
  check.macs = options.macs;
  check.streams = options.workers;
  // Another process's clock need not be ours.
  check.started = options.sends ? ticks_now() : 0;
  check.latency_from = (options.warmup + options.workers - 1) / options.workers;
  for (std::uint16_t i = 0; i < options.workers; ++i) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->checker = std::make_unique<Checker>(plan_, check);
    members_.back()->returned = std::vector<std::atomic<std::uint64_t>>(options.workers);
  }
}

std::uint64_t TrafficGroup::packets_of(std::uint16_t worker) const {
  if (options_.packets == 0) return std::numeric_limits<std::uint64_t>::max();
  return options_.packets / options_.workers + (worker < options_.packets % options_.workers ? 1 : 0);
}

bool TrafficGroup::done() const {
  return std::ranges::all_of(members_, [](const auto& member) { return member->done.load(std::memory_order_acquire); });
}

bool TrafficGroup::sending() const {
  return std::ranges::any_of(members_,
                             [](const auto& member) { return member->sending.load(std::memory_order_acquire); });
}

bool TrafficGroup::all_came_back() const {
  const std::uint64_t arrived = options_.arrived ? options_.arrived() : 0;
  std::uint64_t sent = 0;
  std::uint64_t distinct = 0;
  for (const auto& member : members_) {
    sent += member->counters.tx.get();
    distinct += member->checker->counters().distinct.get();
  }
  return (options_.arrived ? arrived : distinct) >= sent;
}

bool TrafficGroup::received_enough() const {
  if (options_.sends || options_.packets == 0) return false;
  std::uint64_t delivered = 0;
  for (const auto& member : members_) delivered += member->counters.delivered.get();
  return delivered >= options_.packets;
}

std::uint64_t TrafficGroup::overtaken() const {
  if (!done()) return 0;
  std::uint64_t sent = 0;
  std::uint64_t distinct = 0;
  for (std::uint16_t stream = 0; stream < options_.workers; ++stream) {
    std::uint64_t end = 0;
    for (const auto& member : members_) end = std::max(end, member->ends[stream]);
    sent += end;
  }
  for (const auto& member : members_) distinct += member->checker->counters().distinct.get();
  return sent - std::min(sent, distinct);
}

QueueTotals TrafficGroup::queue_totals(std::uint16_t worker) const {
  const Member& member = *members_[worker];
  const TrafficCounters& counters = member.counters;
  const auto seconds = [](std::uint64_t begin, std::uint64_t end) { return ticks_to_nanos(end - begin) / 1e9; };
  QueueTotals totals;
  totals.header_bytes = plan_.head_bytes() - kStampBytes;
  totals.tx = {{counters.tx.get(), counters.tx_bytes.get()}, seconds(member.tx.begin, member.tx.end)};
  totals.stalls = counters.stalls.get();
  totals.rx = {{counters.rx.get(), counters.rx_bytes.get()}, seconds(member.rx.begin, member.rx.end)};
  if (member.left != 0) totals.left_s = seconds(member.tx.begin, std::max(member.left, member.tx.end));
  totals.unreported = member.unreported;
  return totals;
}

void TrafficGroup::note_returned(std::uint16_t worker) {
  for (std::uint16_t stream = 0; stream < options_.workers; ++stream) {
    std::atomic<std::uint64_t>& noted = members_[stream]->returned[worker];
    const std::uint64_t distinct = members_[worker]->checker->distinct_of(stream);
    if (noted.load(std::memory_order_relaxed) != distinct) noted.store(distinct, std::memory_order_relaxed);
  }
}

std::uint64_t TrafficGroup::returned_of(std::uint16_t stream) const {
  std::uint64_t frames = 0;
  for (const std::atomic<std::uint64_t>& count : members_[stream]->returned) {
    frames += count.load(std::memory_order_relaxed);
  }
  return frames;
}

std::uint64_t TrafficGroup::share_on_the_way() const {
  const std::uint64_t arrived = options_.arrived();
  std::uint64_t made = 0;
  for (const auto& member : members_) made += member->counters.generated.get();
  return (made - std::min(made, arrived) + options_.workers - 1) / options_.workers;
}

Tally TrafficGroup::through() const {
  Tally sum;
  for (const auto& member : members_) {
    const TrafficCounters& counters = member->counters;
    sum += options_.sends ? Tally{counters.tx.get(), counters.tx_bytes.get()}
                          : Tally{counters.delivered.get(), counters.delivered_bytes.get()};
  }
  return sum;
}

TrafficGroup::Totals TrafficGroup::totals() const {
  Totals totals;
  std::uint64_t distinct = 0;
  std::uint64_t replies_unsent = 0;
  for (const auto& member : members_) {
    const TrafficCounters& counters = member->counters;
    const VerifyCounters& verify = member->checker->counters();
    // What came back is read before what was sent, so that it is never more.
    distinct += verify.distinct.get();
    totals.verify.checked += verify.checked.get();
    totals.verify.bad += verify.bad.get();
    totals.verify.duplicated += verify.duplicated.get();
    totals.verify.reordered += verify.reordered.get();
    totals.verify.late += verify.late.get();
    totals.delivered += {counters.delivered.get(), counters.delivered_bytes.get()};
    totals.rx += {counters.rx.get(), counters.rx_bytes.get()};
    for (std::size_t i = 0; i < kVerdicts; ++i) totals.drops[i] += counters.drops.get(static_cast<Verdict>(i));
  }
  for (const auto& member : members_) {
    const TrafficCounters& counters = member->counters;
    totals.stalls += counters.stalls.get();
    totals.no_mbuf += counters.no_mbuf.get();
    totals.tx += {counters.tx.get(), counters.tx_bytes.get()};
    totals.replies += {counters.replies.get(), counters.reply_bytes.get()};
    replies_unsent += counters.replies_unsent.get();
    totals.generated += {counters.generated.get(), counters.generated_bytes.get()};
  }
  const std::uint64_t settled = totals.tx.packets + totals.drops[static_cast<std::size_t>(Verdict::tx_full)];
  totals.unsent = totals.generated.packets - std::min(settled, totals.generated.packets);
  totals.drops[static_cast<std::size_t>(Verdict::tx_full)] += replies_unsent;
  totals.verify.missing = options_.sends ? totals.tx.packets - std::min(distinct, totals.tx.packets) : overtaken();
  return totals;
}

void TrafficGroup::add_to(RunTotals& totals) const {
  const Totals own = this->totals();
  totals.rx += own.rx;
  totals.tx += own.tx;
  totals.tx += own.replies;
  totals.generated = own.generated;
  totals.delivered = own.delivered;
  for (std::size_t i = 0; i < kVerdicts; ++i) totals.drops[i] += own.drops[i];
  totals.in_flight += own.unsent;
  totals.verify = own.verify;
}

void TrafficGroup::merge_latency(Histogram& into) const {
  for (const auto& member : members_) into.merge(member->checker->latency());
}

}  // namespace warpline::traffic
