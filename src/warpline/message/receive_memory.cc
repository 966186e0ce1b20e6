// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/receive_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace warpline::message {
namespace {

std::uint32_t blocks_of(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes / ReceiveMemory::kMinBlock, 1U << 31));
}

}  // namespace

ReceiveMemory::ReceiveMemory(std::uint64_t bytes)
    : ReceiveMemory(blocks_of(bytes), nullptr, [&] {
        const std::size_t size = std::size_t{blocks_of(bytes)} * kMinBlock;
        return Own(LargeAllocator<std::uint8_t>().allocate(size), Free{size});
      }()) {}

ReceiveMemory::ReceiveMemory(std::span<std::uint8_t> memory)
    : ReceiveMemory(blocks_of(memory.size()), memory.data(), Own(nullptr, Free{0})) {}

ReceiveMemory::ReceiveMemory(std::uint32_t blocks, std::uint8_t* bytes, Own own)
    : blocks_(blocks),
      own_(std::move(own)),
      memory_(own_ == nullptr ? bytes : own_.get()),
      nodes_(blocks_, Node{kEnd, kEnd, kNotHead}) {
  free_.fill(kEnd);
  for (std::uint32_t block = 0; block < blocks_;) {
    const auto fits = static_cast<unsigned>(std::bit_width(blocks_ - block) - 1);
    const unsigned order = block == 0 ? fits : std::min(fits, static_cast<unsigned>(std::countr_zero(block)));
    push(block, order);
    block += 1U << order;
  }
  free_bytes_ = capacity();
}

void ReceiveMemory::push(std::uint32_t block, unsigned order) {
  nodes_[block] = {free_[order], kEnd, static_cast<std::uint8_t>(order)};
  if (free_[order] != kEnd) nodes_[free_[order]].previous = block;
  free_[order] = block;
  occupied_ |= 1U << order;
}

void ReceiveMemory::unlink(std::uint32_t block, unsigned order) {
  const Node& node = nodes_[block];
  (node.previous == kEnd ? free_[order] : nodes_[node.previous].next) = node.next;
  if (node.next != kEnd) nodes_[node.next].previous = node.previous;
  if (free_[order] == kEnd) occupied_ &= ~(1U << order);
}

std::uint8_t* ReceiveMemory::take(std::uint64_t length) {
  if (length > capacity()) return nullptr;
  const std::uint64_t wanted_blocks = length == 0 ? 1 : (length + kMinBlock - 1) / kMinBlock;
  const auto wanted = static_cast<unsigned>(std::bit_width(wanted_blocks - 1));
  if (wanted >= kOrders) return nullptr;
  const std::uint32_t fitting = occupied_ & (~0U << wanted);
  if (fitting == 0) return nullptr;
  auto order = static_cast<unsigned>(std::countr_zero(fitting));
  const std::uint32_t block = free_[order];
  unlink(block, order);
  while (order > wanted) {
    --order;
    push(block + (1U << order), order);
  }
  nodes_[block].order = static_cast<std::uint8_t>(wanted | kTaken);
  free_bytes_ -= std::uint64_t{kMinBlock} << wanted;
  return memory_ + std::size_t{block} * kMinBlock;
}

std::uint64_t ReceiveMemory::give(std::uint8_t* buffer) {
  auto block = static_cast<std::uint32_t>(static_cast<std::size_t>(buffer - memory_) / kMinBlock);
  unsigned order = nodes_[block].order & ~kTaken & 0xffU;
  const std::uint64_t bytes = std::uint64_t{kMinBlock} << order;
  free_bytes_ += bytes;
  while (order + 1 < kOrders) {
    const std::uint32_t buddy = block ^ (1U << order);
    if (buddy >= blocks_ || nodes_[buddy].order != order) break;
    unlink(buddy, order);
    nodes_[std::max(block, buddy)].order = kNotHead;
    block = std::min(block, buddy);
    ++order;
  }
  push(block, order);
  return bytes;
}

}  // namespace warpline::message
