// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"
#include "warpline/base/give_way.h"

namespace warpline::vnic {
namespace {

/// How a frame of `length` bytes lies in groups of buffers.
struct Cut {
  std::uint32_t head;    ///< bytes that the very first buffer takes
  std::uint32_t groups;  ///< 0: it never fits
};

Cut cut(const RxQueue& queue, const FrameInfo& info, std::uint32_t most_pieces) {
  std::uint32_t room = 0;
  for (std::uint16_t i = 0; i < queue.group; ++i) room += queue.room[i];
  std::uint32_t head = queue.room[0];
  if (queue.split_at_headers && info.header_length != 0) head = std::min(head, info.header_length);
  const std::uint32_t first = head + (room - queue.room[0]);
  if (info.length <= first) return {head, 1};
  if (!queue.scatter) return {head, 0};
  const std::uint32_t groups = 1 + (info.length - first + room - 1) / room;
  return {head, groups * queue.group <= most_pieces ? groups : 0};
}

std::uint64_t done_word(std::uint32_t length, const FrameInfo& info, std::uint64_t end) {
  return rx_done_word(static_cast<std::uint16_t>(length), static_cast<std::uint32_t>(info.release_nanos),
                      info.rx_flags | end);
}

}  // namespace

/// Fills buffers with a frame of several, or one that does not fit.
Engine::Fill Engine::fill(RxQueue& queue, RxState& state, PacketBuffer::Front front, std::uint32_t& vacant) {
  const FrameInfo& info = *front.info;
  CopyLane* const lane = copies_ ? &state.copies->lane : nullptr;
  // The driver posts no more before free_thresh descriptors are free: for a longer frame it would be waited forever.
  std::uint32_t fit = std::uint32_t{queue.size} - queue.free_thresh;
  if (const std::uint32_t most = hardware_.args.persona->buffers_received; most != 0) fit = std::min(fit, most);
  const auto [head, groups] = cut(queue, info, lane != nullptr ? std::min(fit, CopyLane::kMostCopies) : fit);
  if (groups == 0) {
    queue.device_counts.add(Count::rx_too_long);
    return Fill::lost;
  }
  const std::uint32_t pieces = groups * queue.group;
  if (pieces > vacant || (lane != nullptr && !lane->takes(pieces))) return Fill::wait;
  std::uint32_t left = info.length;
  std::uint16_t at = queue.fill_at;
  const auto take = [&](std::uint32_t i) {
    return std::min<std::uint32_t>(left, i == 0 ? head : queue.room[i % queue.group]);
  };
  for (std::uint32_t i = 0; i < pieces && front.frame != nullptr; ++i, at = advance(at, queue.size)) {
    const std::uint32_t length = take(i);
    if (length != 0 && !hardware_.iommu.allows(queue.ring[at].address, length, state.memory)) {
      queue.device_counts.add(Count::rx_iommu_fault);
      return Fill::lost;
    }
    left -= length;
  }
  left = info.length;
  const std::uint8_t* from = front.frame;
  const std::uint64_t not_yet = lane != nullptr ? std::uint64_t{kRxDone} : 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    RxDescriptor& descriptor = queue.ring[queue.fill_at];
    const std::uint32_t length = take(i);
    if (from != nullptr && length != 0) {
      void* const to = reinterpret_cast<void*>(descriptor.address);
      if (lane != nullptr) {
        lane->add(to, from, length);
      } else {
        copy_bytes(to, from, length);
      }
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
  PacketBuffer& buffer = hardware_.ingress.buffer(queue.id);
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  std::uint32_t vacant = posted;
  std::uint32_t frames = 0;
  Looks looks{.made = source_ == nullptr};
  bool took = false;
  const bool plain = queue.group == 1;
  while (frames < most) {
    const PacketBuffer::Front front = arrived(buffer, state, looks, most - frames);
    if (front.info == nullptr) break;
    const FrameInfo& info = *front.info;
    RxDescriptor& descriptor = queue.ring[queue.fill_at];
    if (plain && vacant != 0 && info.length <= queue.room[0] &&
        hardware_.iommu.allows(descriptor.address, info.length, state.memory)) [[likely]] {
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
  if (took) buffer.give_back();
  return frames;
}

std::uint32_t Engine::receive_fixed(RxQueue& queue, std::uint32_t most) {
  Schedule& schedule = rx_[queue.id]->schedule;
  if (schedule.endless()) [[likely]]
    return fill_fixed(queue, most);
  const std::uint32_t frames = fill_fixed(queue, schedule.arrived(most, device_nanos()));
  schedule.take(frames);
  if (const std::uint64_t missed = schedule.take_missed(); missed != 0) [[unlikely]]
    queue.device_counts.add(Count::rx_no_descriptor, missed);
  return frames;
}

std::uint32_t Engine::fill_fixed(RxQueue& queue, std::uint32_t most) {
  const std::uint32_t length = hardware_.args.size;
  if (queue.group == 1 && length <= queue.room[0]) [[likely]] {
    return serve_rx_static(queue, most, static_cast<std::uint16_t>(length));
  }
  if (queue.group == 2 && length <= std::uint32_t{queue.room[0]} + queue.room[1]) {
    const std::uint32_t head = std::min<std::uint32_t>(length, queue.room[0]);
    return serve_rx_static_split(queue, most, static_cast<std::uint16_t>(head),
                                 static_cast<std::uint16_t>(length - head));
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
  const Faults& faults = hardware_.egress.faults();
  if (queue.stall_draw.happens(faults.stall())) [[unlikely]] {
    queue.device_counts.add(Count::fault_stall_polls);
    return 0;
  }
  if (queue.rx_out_draw.happens(faults.rx_out())) [[unlikely]] {
    queue.device_counts.add(Count::fault_rx_out_polls);
    return 0;
  }
  RxState& state = *rx_[queue.id];
  const std::uint32_t frames = copies_ ? receive_copies(queue, state, most) : receive(queue, state, most);
  if (frames == 0) hardware_.egress.idle_poll();
  return frames;
}

int Engine::reset(RxQueue& queue) {
  RxState& state = *rx_[queue.id];
  state.memory = {};
  queue.filled = 0;
  queue.fill_at = 0;
  if (hardware_.args.wire == WireKind::fixed) {
    // The port's rate, in equal parts.
    const double queues = std::max<std::uint16_t>(1, hardware_.rx_queues);
    const Devargs& args = hardware_.args;
    state.schedule.start(SupplyRate(args.packets_per_s / queues, args.step, args.step_nanos));
  }
  if (copies_) {
    if (const int error = state.copies->lane.open(copy_engine_, RTE_NET_VNIC_RX, queue.id); error != 0) return error;
    state.copies->land_at = 0;
  }
  served_rx_[queue.id].store(&queue, std::memory_order_release);
  return 0;
}

void Engine::finish(RxQueue& queue) {
  served_rx_[queue.id].store(nullptr, std::memory_order_release);
  wait_for_pass();
  if (!copies_) return;
  RxCopies& copies = *rx_[queue.id]->copies;
  while (copies.lane.busy()) {
    copies.lane.submit();
    land(queue, copies);
    if (copies.lane.busy()) give_way();
  }
  copies.lane.close();
}

}  // namespace warpline::vnic
