// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/egress.h"

#include <cerrno>
#include <mutex>
#include <new>

#include "vnic/common/device_clock.h"

namespace warpline::vnic {
namespace {

/// Polls that receive nothing before a sender counts as idle: some rounds of a loop that sends and receives in turn.
constexpr std::uint32_t kIdlePolls = 64;

}  // namespace

Egress::Egress(const Devargs& args, Link& link, Ingress& ingress)
    : link_(link),
      faults_(args.faults, args.seed),
      made_end_(args.wire == WireKind::source ? &ingress : nullptr),
      swallows_(args.wire == WireKind::source || args.wire == WireKind::sink || args.wire == WireKind::fixed) {}

void Egress::lock() {
  lock_.lock();
  changes_frames_ = faults_.active();
  // What is made comes in where others send out.
  other_end_ = made_end_ != nullptr ? made_end_ : sink_.load(std::memory_order_acquire);
  if (!link_.up.load(std::memory_order_relaxed) || (!swallows_ && other_end_ == nullptr)) {
    way_ = Way::blocked;
  } else {
    way_ = swallows_ ? Way::swallow : Way::deliver;
  }
  if (other_end_ != nullptr) other_end_->begin();
}

void Egress::unlock() {
  if (other_end_ != nullptr) other_end_->end();
  holds_back_.store(faults_.held() != 0, std::memory_order_relaxed);
  if (faults_.link_up() != carrier_) [[unlikely]] {
    carrier_ = !carrier_;
    if (link_.interrupts.load(std::memory_order_relaxed) || faults_.was_reset()) raise_link_interrupt(link_);
  }
  idle_polls_.store(0, std::memory_order_relaxed);
  lock_.unlock();
}

bool Egress::block() {
  const bool up = link_.up.load(std::memory_order_relaxed);
  counts.add(up ? Count::tx_no_peer : Count::tx_link_down);
  return false;
}

void Egress::receive(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos) {
  if (changes_frames_) {
    faults_.pass(frame, length, now_nanos, *other_end_, counts);
  } else {
    other_end_->deliver(frame, length, now_nanos);
  }
}

void Egress::flush(std::uint64_t now_nanos) {
  if (other_end_ != nullptr) faults_.flush(now_nanos, *other_end_);
}

int Egress::set_faults(const FaultConfig& config) {
  const std::scoped_lock held(*this);
  try {
    faults_.configure(config);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  return 0;
}

void Egress::count_idle_poll() {
  if (idle_polls_.fetch_add(1, std::memory_order_relaxed) + 1 < kIdlePolls) return;
  const std::scoped_lock held(*this);
  flush(device_nanos());
}

}  // namespace warpline::vnic
