// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/lanes/host_lane_memory.h"

#include <cstring>
#include <new>
#include <utility>

namespace warpline::stream {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

void HostLaneMemory::Free::operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }

HostLaneMemory::Block HostLaneMemory::zeroed(std::size_t bytes) {
  Block block(static_cast<std::byte*>(::operator new(bytes, kAlignment)));
  std::memset(block.get(), 0, bytes);
  return block;
}

Result<HostLaneMemory> HostLaneMemory::create(const LaneShape& shape, bool populate) {
  WARPLINE_TRY(RingMemory rings, RingMemory::create(shape.connections, shape.ring_bytes, populate));
  std::unique_ptr<queues::PacketQueues> queues;
  if (shape.queue_slots != 0) {
    WARPLINE_TRY(queues, queues::PacketQueues::create({.slots = shape.queue_slots}));
  }
  return HostLaneMemory(shape, std::make_shared<const RingMemory>(std::move(rings)), std::move(queues));
}

HostLaneMemory::HostLaneMemory(const LaneShape& shape, std::shared_ptr<const RingMemory> rings,
                               std::unique_ptr<queues::PacketQueues> queues)
    : parts_(shape),
      shared_(zeroed(parts_.shared_bytes())),
      own_(zeroed(parts_.own_bytes())),
      rings_(std::move(rings)),
      queues_(std::move(queues)) {
  std::memset(own_.get() + parts_.places_begin(), 0xff, parts_.places_bytes());
  parts_.place(shared_.get(), own_.get(), rings_->ring(0));
  if (queues_) parts_.set_queues(queues_->view());
}

}  // namespace warpline::stream
