// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/burst_ring.h"

#include <fmt/core.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

namespace warpline::handoff {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kMaxSlots = 1U << 16;

std::size_t region_size(const BurstRingShape& shape) {
  const std::size_t lines = 1 + 2 * std::size_t{shape.slots};
  const std::size_t size = lines * kRingLine + std::size_t{shape.slots} * shape.segments * sizeof(Segment);
  return (size + kPage - 1) / kPage * kPage;
}

}  // namespace

Result<std::unique_ptr<BurstRing>> BurstRing::create(const BurstRingShape& shape) {
  if (!std::has_single_bit(shape.slots) || shape.slots > kMaxSlots) {
    return usage_error(fmt::format("a burst ring of {} slots", shape.slots),
                       fmt::format("the number must be a power of two, at most {}", kMaxSlots),
                       fmt::format("use {}", shape.slots > kMaxSlots ? kMaxSlots : std::bit_ceil(shape.slots)));
  }
  if (shape.packets == 0 || shape.segments < shape.packets) {
    return usage_error(fmt::format("bursts of {} packets in {} segments", shape.packets, shape.segments),
                       "a burst holds at least one packet, and a packet at least one segment");
  }
  return std::unique_ptr<BurstRing>(new BurstRing(shape));
}

BurstRing::BurstRing(const BurstRingShape& shape)
    : slots_(shape.slots),
      segments_per_slot_(shape.segments),
      first_sequence_(shape.first_sequence),
      region_size_(handoff::region_size(shape)),
      region_(make_region()),
      bursts_(std::make_unique<Burst[]>(shape.slots)),
      packets_(std::make_unique<void*[]>(std::size_t{shape.slots} * shape.packets)),
      view_(view_in(region_, shape.first_sequence)),
      next_(shape.first_sequence),
      seen_released_(shape.first_sequence),
      published_(shape.first_sequence),
      oldest_(shape.first_sequence),
      released_(shape.first_sequence) {
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    bursts_[slot].packets_ = packets_.get() + std::size_t{slot} * shape.packets;
    bursts_[slot].segment_capacity_ = shape.segments;
    bursts_[slot].packet_capacity_ = shape.packets;
  }
}

BurstRing::Region BurstRing::make_region() const {
  return Region(new (std::align_val_t{kPage}) std::byte[region_size_]());
}

EngineView BurstRing::view_in(const Region& region, std::uint64_t sequence) const {
  auto* const words = std::launder(reinterpret_cast<RingWord*>(region.get()));
  EngineView view{};
  view.stop = words;
  view.ready = words + 1;
  view.done = view.ready + slots_;
  view.segments = std::launder(reinterpret_cast<Segment*>(view.done + slots_));
  view.slot_mask = slots_ - 1;
  view.segments_per_slot = segments_per_slot_;
  view.first_sequence = first_sequence_;
  for (std::uint32_t i = 0; i < slots_; ++i, ++sequence) {
    const std::uint64_t slot = sequence & view.slot_mask;
    view.ready[slot].value = view.done[slot].value = pack_ring_word(sequence - slots_, 0);
  }
  return view;
}

const EngineView& BurstRing::renew() {
  renewed_region_ = make_region();
  renewed_view_ = view_in(renewed_region_, published_.load(std::memory_order_acquire));
  renewed_view_.stop = view_.stop;
  renewed_.store(&renewed_view_, std::memory_order_release);
  return renewed_view_;
}

void BurstRing::move_to_renewed() {
  if (filling_ != &view_) return;
  filling_ = &renewed_view_;
  renewed_from_.store(next_, std::memory_order_release);
}

void BurstRing::FreeRegion::operator()(std::byte* region) const { operator delete[](region, std::align_val_t{kPage}); }

const Burst* BurstRing::reclaim() {
  if (oldest_ == published_.load(std::memory_order_acquire)) return nullptr;
  if (const Burst* done = completed()) return done;
  Burst& left = burst(oldest_);
  left.exceptions_ = 0;
  left.preset_count_ = left.packet_count_;
  left.worked_ = 0;
  Segment* first = left.segments_;
  for (std::uint16_t i = 0; i < left.packet_count_; ++i) {
    if (first->verdict == Verdict::forward) first->verdict = Verdict::engine_stopped;
    ++left.exceptions_;
    first += first->more + 1;
  }
  return &left;
}

}  // namespace warpline::handoff
