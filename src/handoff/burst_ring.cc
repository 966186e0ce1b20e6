// SPDX-License-Identifier: Apache-2.0
#include "handoff/burst_ring.h"

#include <fmt/core.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

namespace warpline {
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
      region_size_(warpline::region_size(shape)),
      region_(new(std::align_val_t{kPage}) std::byte[region_size_]()),
      bursts_(std::make_unique<Burst[]>(shape.slots)),
      packets_(std::make_unique<void*[]>(std::size_t{shape.slots} * shape.packets)),
      next_(shape.first_sequence),
      seen_released_(shape.first_sequence),
      published_(shape.first_sequence),
      oldest_(shape.first_sequence),
      released_(shape.first_sequence) {
  auto* const words = std::launder(reinterpret_cast<RingWord*>(region_.get()));
  view_.stop = words;
  view_.ready = words + 1;
  view_.done = view_.ready + slots_;
  view_.segments = std::launder(reinterpret_cast<Segment*>(view_.done + slots_));
  view_.slot_mask = slots_ - 1;
  view_.segments_per_slot = shape.segments;
  view_.first_sequence = shape.first_sequence;

  // Each slot starts as if the burst one round earlier had passed, so that no first look mistakes it for published.
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const std::uint64_t sequence = shape.first_sequence + i;
    const std::uint64_t slot = sequence & view_.slot_mask;
    view_.ready[slot].value = view_.done[slot].value = pack_ring_word(sequence - slots_, 0);
    Burst& burst = bursts_[slot];
    burst.segments_ = view_.segments + slot * shape.segments;
    burst.packets_ = packets_.get() + slot * shape.packets;
    burst.segment_capacity_ = shape.segments;
    burst.packet_capacity_ = shape.packets;
  }
}

void BurstRing::FreeRegion::operator()(std::byte* region) const { operator delete[](region, std::align_val_t{kPage}); }

const Burst* BurstRing::reclaim() {
  if (oldest_ == published_.load(std::memory_order_acquire)) return nullptr;
  if (const Burst* done = completed()) return done;
  Burst& left = burst(oldest_);
  left.exceptions_ = 0;
  Segment* first = left.segments_;
  for (std::uint16_t i = 0; i < left.packet_count_; ++i) {
    if (first->verdict == Verdict::forward) first->verdict = Verdict::engine_stopped;
    ++left.exceptions_;
    first += first->more + 1;
  }
  return &left;
}

}  // namespace warpline
