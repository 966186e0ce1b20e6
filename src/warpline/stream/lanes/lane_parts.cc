// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/lanes/lane_parts.h"

#include <atomic>

#include "warpline/stream/internal/lane_layout.h"

namespace warpline::stream {

LaneParts::LaneParts(const LaneShape& shape) : shape_(shape), view_(std::make_unique<LaneView>()) {}
LaneParts::LaneParts(LaneParts&&) noexcept = default;
LaneParts& LaneParts::operator=(LaneParts&&) noexcept = default;
LaneParts::~LaneParts() = default;

std::size_t LaneParts::shared_bytes() const { return LaneLayout(shape_).shared_bytes(); }
std::size_t LaneParts::own_bytes() const { return LaneLayout(shape_).own_bytes(); }
std::size_t LaneParts::places_begin() const { return LaneLayout(shape_).places_begin(); }
std::size_t LaneParts::places_bytes() const { return places_of(shape_) * sizeof(std::uint32_t); }
std::size_t LaneParts::view_bytes() const { return sizeof(LaneView); }

void LaneParts::place(std::byte* shared, std::byte* own, std::uint8_t* rings) {
  *view_ = LaneLayout(shape_).view(shared, own, rings, {});
}

void LaneParts::set_queues(const queues::QueuePairView& queues) { view_->queues = queues; }

void LaneParts::set_station(const LaneStation& station) { view_->station = station; }

void LaneParts::request_stop() const { std::atomic_ref(view_->stop->value).store(1, std::memory_order_release); }

}  // namespace warpline::stream
