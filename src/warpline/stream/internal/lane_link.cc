// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/lane_link.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace warpline::stream {

LaneLink::LaneLink(std::unique_ptr<SegmentLane> lane, bool prompt)
    : lane_(std::move(lane)),
      shape_(lane_->view().shape),
      layout_(shape_),
      prompt_(prompt),
      tokens_(std::size_t{shape_.slots} * shape_.burst),
      counts_(shape_.slots),
      again_ends_(shape_.slots),
      again_(tokens_.size()),
      returned_(2 * tokens_.size()),
      wanted_(shape_.connections),
      changes_(shape_.connections),
      tells_(shape_.connections) {}

std::uint32_t LaneLink::room() const {
  if (!has_slot() || again_count_ != 0) return 0;
  // Whoever does not take frames back gives no more.
  const std::uint64_t places = returned_.size() - std::min<std::uint64_t>(returned_.size(), held_ + returned_count_);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(shape_.burst - count_, places));
}

void LaneLink::append(const Segment& segment, bool right, void* token) {
  const BurstSlot slot = slot_of(next_);
  slot.segments[count_] = segment;
  std::uint32_t& word = slot.checksums_right[count_ / 32];
  const std::uint32_t bit = 1U << count_ % 32;
  word = right ? word | bit : word & ~bit;
  tokens_[place_of(next_) * shape_.burst + count_++] = token;
}

void LaneLink::add(FrameRef frame, bool checksums_are_right, void* token) {
  for (std::uint32_t i = 0; i < frame.count; ++i) {
    append(frame.segments[i], checksums_are_right, i == 0 ? token : nullptr);
  }
  held_ += frame.count;
}

void LaneLink::add_again(std::uint32_t i) {
  const BurstSlot slot = slot_of(oldest_);
  const std::uint32_t end = i + slot.segments[i].more + 1U;
  held_ += end - i;
  ++again_added_;
  for (; i < end; ++i) {
    void* const token = tokens_[place_of(oldest_) * shape_.burst + i];
    again_[(again_first_ + again_count_++) % again_.size()] = {slot.segments[i], token, checksums_right(slot, i)};
  }
}

/// Frames that are to be taken again come before all new ones.
void LaneLink::refill() {
  if (!has_slot()) return;
  while (again_count_ != 0) {
    const std::uint32_t pieces = again_[again_first_].segment.more + 1U;
    if (count_ + pieces > shape_.burst) return;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const Again& again = again_[again_first_];
      append(again.segment, again.right, again.token);
      again_first_ = (again_first_ + 1) % again_.size();
    }
    again_count_ -= pieces;
    ++again_taken_;
  }
}

void LaneLink::send() {
  const std::uint64_t place = place_of(next_);
  counts_[place] = count_;
  again_ends_[place] = again_taken_;
  std::atomic_ref(lane_->view().ready[place].value).store(next_ << 32 | count_, std::memory_order_release);
  lane_->submit(next_);
  ++next_;
  count_ = 0;
  refill();
}

bool LaneLink::is_done() const {
  if (oldest_ == next_) return false;
  const std::uint64_t word =
      std::atomic_ref(lane_->view().done[place_of(oldest_)].value).load(std::memory_order_acquire);
  return word == oldest_ << 32;
}

LaneLink::DoneBurst LaneLink::begin_oldest() {
  const std::uint64_t place = place_of(oldest_);
  again_done_ = again_ends_[place];
  held_ -= counts_[place];
  return {oldest_, slot_of(oldest_), counts_[place], {tokens_.data() + place * shape_.burst, counts_[place]}};
}

void LaneLink::end_oldest() {
  ++oldest_;
  refill();
}

std::uint64_t LaneLink::stop(Nanos patience) {
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
  for (; again_count_ != 0; --again_count_) {
    give_all_back({&again_[again_first_].token, 1});
    again_first_ = (again_first_ + 1) % again_.size();
  }
  count_ = 0;
  held_ = 0;
  return frames;
}

std::uint32_t LaneLink::take_back(std::span<void*> tokens) {
  const auto count = static_cast<std::uint32_t>(std::min(tokens.size(), returned_count_));
  for (std::uint32_t i = 0; i < count; ++i) {
    tokens[i] = returned_[returned_first_];
    returned_first_ = (returned_first_ + 1) % returned_.size();
  }
  returned_count_ -= count;
  return count;
}

}  // namespace warpline::stream
