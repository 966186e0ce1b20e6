// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <algorithm>

#include "device.h"
#include "engine_state.h"

namespace warpline::vnic {
namespace {

/// How a frame of `length` bytes lies in groups of buffers.
struct Cut {
  std::uint32_t head;    ///< bytes that the very first buffer takes
  std::uint32_t groups;  ///< 0: it never fits
};

Cut cut(const RxQueue& queue, const FrameInfo& info) {
  std::uint32_t room = 0;
  for (std::uint16_t i = 0; i < queue.group; ++i) room += queue.room[i];
  std::uint32_t head = queue.room[0];
  if (queue.split_at_headers && info.header_length != 0) head = std::min(head, info.header_length);
  const std::uint32_t first = head + (room - queue.room[0]);
  if (info.length <= first) return {head, 1};
  if (!queue.scatter) return {head, 0};
  const std::uint32_t groups = 1 + (info.length - first + room - 1) / room;
  // The driver posts no more before that many descriptors are free: for a longer one it would be waited forever.
  return {head, groups * queue.group <= std::uint32_t{queue.size} - queue.free_thresh ? groups : 0};
}

std::uint64_t done_word(std::uint32_t length, const FrameInfo& info, std::uint64_t end) {
  return rx_done_word(static_cast<std::uint16_t>(length), static_cast<std::uint32_t>(info.release_nanos),
                      info.rx_flags | end);
}

}  // namespace

/// Fills buffers with a frame of several, or one that does not fit.
Engine::Fill Engine::fill(RxQueue& queue, RxState& state, PacketBuffer::Front front, std::uint32_t& vacant) {
  const FrameInfo& info = *front.info;
  const auto [head, groups] = cut(queue, info);
  if (groups == 0) {
    queue.device_counts.add(Count::rx_too_long);
    return Fill::lost;
  }
  const std::uint32_t pieces = groups * queue.group;
  if (pieces > vacant) return Fill::wait;
  std::uint32_t left = info.length;
  std::uint16_t at = queue.fill_at;
  const auto take = [&](std::uint32_t i) {
    return std::min<std::uint32_t>(left, i == 0 ? head : queue.room[i % queue.group]);
  };
  for (std::uint32_t i = 0; i < pieces && front.frame != nullptr; ++i, at = advance(at, queue.size)) {
    const std::uint32_t length = take(i);
    if (length != 0 && !device_.iommu.allows(queue.ring[at].address, length, state.memory)) {
      queue.device_counts.add(Count::rx_iommu_fault);
      return Fill::lost;
    }
    left -= length;
  }
  left = info.length;
  const std::uint8_t* from = front.frame;
  const std::uint64_t not_yet = copies_apart_ ? std::uint64_t{kRxDone} : 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    RxDescriptor& descriptor = queue.ring[queue.fill_at];
    const std::uint32_t length = take(i);
    if (from != nullptr && length != 0) {
      copy_out(reinterpret_cast<void*>(descriptor.address), from, length);
      from += length;
    }
    left -= length;
    descriptor.address = rx_hash_and_mark(info.hash, info.mark);
    const std::uint64_t end = i + 1 == pieces ? std::uint64_t{kRxEnd} : 0;
    write_back(descriptor.word, done_word(length, info, end) & ~not_yet);
    queue.fill_at = advance(queue.fill_at, queue.size);
  }
  vacant -= pieces;
  return Fill::done;
}

std::uint32_t Engine::receive(RxQueue& queue, RxState& state, std::uint32_t most) {
  PacketBuffer& buffer = device_.ingress.buffer(queue.id);
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  std::uint32_t vacant = posted;
  std::uint32_t frames = 0;
  bool made = source_ == nullptr;
  bool looked = false;
  bool took = false;
  const bool plain = queue.group == 1 && !copies_apart_;
  while (frames < most) {
    const PacketBuffer::Front front = buffer.front();
    if (front.info == nullptr) {
      if (made) break;
      made = true;
      make_frames(most - frames);
      continue;
    }
    const FrameInfo& info = *front.info;
    if (info.release_nanos > state.now_nanos) {
      if (looked) break;
      looked = true;
      state.now_nanos = device_nanos();
      if (info.release_nanos > state.now_nanos) break;
    }
    RxDescriptor& descriptor = queue.ring[queue.fill_at];
    if (plain && vacant != 0 && info.length <= queue.room[0] &&
        device_.iommu.allows(descriptor.address, info.length, state.memory)) [[likely]] {
      auto* const to = reinterpret_cast<void*>(descriptor.address);
      copy_bytes(to, front.frame, info.length);
      descriptor.address = rx_hash_and_mark(info.hash, info.mark);
      write_back(descriptor.word, done_word(info.length, info, kRxEnd));
      queue.fill_at = advance(queue.fill_at, queue.size);
      --vacant;
      ++frames;
    } else {
      const Fill result = fill(queue, state, front, vacant);
      if (result == Fill::wait) break;
      if (result == Fill::done) ++frames;
    }
    buffer.take();
    took = true;
  }
  queue.filled += posted - vacant;
  if (copies_apart_) {
    state.flying += posted - vacant;
    state.flying_frames += frames;
  }
  if (took && state.flying == 0) buffer.give_back();
  return frames;
}

/// Writes back what registered operations have brought.
std::uint32_t Engine::land(RxQueue& queue, RxState& state) {
  auto at = static_cast<std::uint16_t>((queue.fill_at + queue.size - state.flying % queue.size) % queue.size);
  for (; state.flying != 0; --state.flying, at = advance(at, queue.size)) {
    std::uint64_t& word = queue.ring[at].word;
    write_back(word, word | kRxDone);
  }
  device_.ingress.buffer(queue.id).give_back();
  const std::uint32_t frames = state.flying_frames;
  state.flying_frames = 0;
  return frames;
}

std::uint32_t Engine::receive_fixed(RxQueue& queue, std::uint32_t most) {
  const std::uint32_t length = device_.args.size;
  if (queue.group == 1 && length <= queue.room[0]) [[likely]] {
    return serve_rx_static(queue, most, static_cast<std::uint16_t>(length));
  }
  const FrameInfo info{0, length, 0, 0, 0, 0};
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  std::uint32_t vacant = posted;
  std::uint32_t frames = 0;
  while (frames < most && fill(queue, *rx_[queue.id], {&info, nullptr}, vacant) == Fill::done) ++frames;
  queue.filled += posted - vacant;
  return frames;
}

std::uint32_t Engine::serve_rx(RxQueue& queue, std::uint32_t most) {
  if (fixed_) return receive_fixed(queue, most);
  const Faults& faults = device_.egress.faults();
  if (queue.stall_draw.happens(faults.stall())) [[unlikely]] {
    queue.device_counts.add(Count::fault_stall_polls);
    return 0;
  }
  if (queue.rx_out_draw.happens(faults.rx_out())) [[unlikely]] {
    queue.device_counts.add(Count::fault_rx_out_polls);
    return 0;
  }
  RxState& state = *rx_[queue.id];
  std::uint32_t frames = 0;
  if (copies_apart_) {
    if (state.flying != 0 && !landed()) return 0;
    if (state.flying != 0) frames = land(queue, state);
    receive(queue, state, most);
    if (state.flying != 0 && landed()) frames += land(queue, state);
  } else {
    frames = receive(queue, state, most);
  }
  if (frames == 0) device_.egress.idle_poll();
  return frames;
}

void Engine::reset(RxQueue& queue) {
  rx_[queue.id]->memory = {};
  queue.filled = 0;
  queue.fill_at = 0;
  served_rx_[queue.id].store(&queue, std::memory_order_release);
}

void Engine::finish(RxQueue& queue) {
  served_rx_[queue.id].store(nullptr, std::memory_order_release);
  wait_for_pass();
  RxState& state = *rx_[queue.id];
  while (state.flying != 0) {
    if (landed()) {
      land(queue, state);
    } else {
      sched_yield();
    }
  }
}

}  // namespace warpline::vnic
