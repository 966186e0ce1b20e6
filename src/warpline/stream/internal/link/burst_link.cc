// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/link/burst_link.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace warpline::stream {

BurstLink::BurstLink(std::unique_ptr<SegmentLane> lane, bool prompt)
    : LaneLink(std::move(lane)),
      prompt_(prompt),
      tokens_(std::size_t{shape_.slots} * shape_.burst),
      counts_(shape_.slots),
      again_ends_(shape_.slots) {}

std::uint32_t BurstLink::room() const {
  return has_slot() && !has_again() ? std::min(shape_.burst - count_, places()) : 0;
}

void BurstLink::append(const Segment& segment, bool right, void* token) {
  const BurstSlot slot = slot_of(next_);
  slot.segments[count_] = segment;
  std::uint32_t& word = slot.checksums_right[count_ / 32];
  const std::uint32_t bit = 1U << count_ % 32;
  word = right ? word | bit : word & ~bit;
  tokens_[place_of(next_) * shape_.burst + count_++] = token;
}

void BurstLink::add(FrameRef frame, std::uint8_t marks, void* token) {
  for (std::uint32_t i = 0; i < frame.count; ++i) {
    append(frame.segments[i], (marks & kRightMark) != 0, i == 0 ? token : nullptr);
  }
  held_ += frame.count;
}

void BurstLink::add_again(std::uint32_t i) {
  const BurstSlot slot = slot_of(oldest_);
  push_again(slot.segments + i, checksums_right(slot, i) ? kRightMark : 0,
             tokens_[place_of(oldest_) * shape_.burst + i]);
}

/// Frames that are to be taken again come before all new ones.
void BurstLink::refill() {
  if (!has_slot()) return;
  while (has_again()) {
    const std::uint32_t pieces = next_one_again().segment.more + 1U;
    if (count_ + pieces > shape_.burst) return;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const Again again = pop_again();
      append(again.segment, (again.marks & kRightMark) != 0, again.token);
    }
    ++again_taken_;
  }
}

void BurstLink::send() {
  const std::uint64_t place = place_of(next_);
  counts_[place] = count_;
  again_ends_[place] = again_taken_;
  std::atomic_ref(lane_->view().ready[place].value).store(next_ << 32 | count_, std::memory_order_release);
  lane_->submit(next_);
  ++next_;
  count_ = 0;
  refill();
}

bool BurstLink::is_done() const {
  if (oldest_ == next_) return false;
  const std::uint64_t word =
      std::atomic_ref(lane_->view().done[place_of(oldest_)].value).load(std::memory_order_acquire);
  return word == oldest_ << 32;
}

BurstLink::DoneBurst BurstLink::begin_oldest() {
  const std::uint64_t place = place_of(oldest_);
  again_done_ = again_ends_[place];
  held_ -= counts_[place];
  return {oldest_, slot_of(oldest_), counts_[place], {tokens_.data() + place * shape_.burst, counts_[place]}};
}

void BurstLink::end_oldest() {
  ++oldest_;
  refill();
}

std::uint64_t BurstLink::stop(Nanos patience) {
  lane_->stop(patience);
  std::uint64_t frames = 0;
  const auto give_all_back = [&](std::span<void* const> tokens) {
    for (void* const token : tokens) {
      if (token == nullptr) continue;
      give_back(token);
      ++frames;
    }
  };
  for (; oldest_ != next_; ++oldest_) give_all_back(begin_oldest().tokens);
  give_all_back({tokens_.data() + place_of(next_) * shape_.burst, count_});
  while (has_again()) {
    const Again again = pop_again();
    give_all_back({&again.token, 1});
  }
  count_ = 0;
  held_ = 0;
  return frames;
}

}  // namespace warpline::stream
