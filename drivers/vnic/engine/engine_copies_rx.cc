// SPDX-License-Identifier: Apache-2.0
// Frames that a copy engine brings to the program's buffers: several bursts are under way at a time.

#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"

namespace warpline::vnic {
namespace {

/// Polls of a busy receive queue between two looks at senders.
constexpr std::uint32_t kBusyPolls = 16;

}  // namespace

/// Begins the copies of up to `most` frames from the wire, as far as one batch holds.
std::uint32_t Engine::begin_received(RxQueue& queue, RxState& state, std::uint32_t most) {
  PacketBuffer& buffer = hardware_.ingress.buffer(queue.id);
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  std::uint32_t vacant = posted;
  std::uint32_t frames = 0;
  Looks looks{.made = source_ == nullptr};
  while (frames < most) {
    const PacketBuffer::Front front = arrived(buffer, state, looks, most - frames);
    if (front.info == nullptr) break;
    const std::uint32_t before = vacant;
    const Fill result = fill(queue, state, front, vacant);
    if (result == Fill::wait) break;
    buffer.take();
    const std::uint32_t whole = result == Fill::done ? 1 : 0;
    state.copies->lane.note(before - vacant, whole, buffer.taken_bytes());
    frames += whole;
  }
  queue.filled += posted - vacant;
  return frames;
}

/// The same with wire=static.
std::uint32_t Engine::begin_supplied(RxQueue& queue, RxState& state, std::uint32_t most) {
  RxCopies& copies = *state.copies;
  if (!state.schedule.endless()) most = state.schedule.arrived(most, device_nanos());
  const FrameInfo info{0, hardware_.args.size, 0, 0, 0, 0};
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.filled;
  std::uint32_t vacant = posted;
  std::uint32_t frames = 0;
  for (; frames < most; ++frames) {
    const std::uint32_t before = vacant;
    const std::uint8_t* const frame = copies.supply.data() + std::size_t{copies.next} * copies.stride;
    if (fill(queue, state, {&info, frame}, vacant) != Fill::done) break;
    copies.lane.note(before - vacant, 1, 0);
    copies.next = copies.next + 1 == copies.supplied ? 0 : copies.next + 1;
  }
  state.schedule.take(frames);
  if (const std::uint64_t missed = state.schedule.take_missed(); missed != 0) [[unlikely]]
    queue.device_counts.add(Count::rx_no_descriptor, missed);
  queue.filled += posted - vacant;
  return frames;
}

/// Writes back what has landed.
std::uint32_t Engine::land(RxQueue& queue, RxCopies& copies) {
  copies.lane.look();
  std::uint32_t frames = 0;
  while (const CopyLane::Batch* const batch = copies.lane.landed()) {
    for (std::uint32_t left = batch->descriptors; left != 0; --left) {
      std::uint64_t& word = queue.ring[copies.land_at].word;
      write_back(word, word | kRxDone);
      copies.land_at = advance(copies.land_at, queue.size);
    }
    frames += batch->frames;
    hardware_.ingress.buffer(queue.id).give_back(batch->position);
    copies.lane.pop();
  }
  if (copies.lane.failed()) [[unlikely]]
    lose(queue, copies);
  return frames;
}

/// After a failure. Their descriptors stay as they are, so that the driver frees the mbufs when the queue stops.
void Engine::lose(RxQueue& queue, RxCopies& copies) {
  while (const CopyLane::Batch* const batch = copies.lane.lost()) {
    queue.device_counts.add(Count::rx_copy_failed, batch->frames);
    hardware_.ingress.buffer(queue.id).give_back(batch->position);
    copies.lane.pop();
  }
}

std::uint32_t Engine::receive_copies(RxQueue& queue, RxState& state, std::uint32_t most) {
  RxCopies& copies = *state.copies;
  const bool supplied = hardware_.args.wire == WireKind::fixed;
  std::uint32_t begun = 0;
  while (begun < most && copies.lane.submit()) {
    const std::uint32_t left = most - begun;
    const std::uint32_t frames = supplied ? begin_supplied(queue, state, left) : begin_received(queue, state, left);
    if (frames == 0) break;
    begun += frames;
  }
  copies.lane.submit();
  const std::uint32_t frames = land(queue, copies);
  if (queue.inline_engine && (frames == 0 || ++copies.polls % kBusyPolls == 0)) look_after_senders(queue.id);
  return frames;
}

void Engine::look_after_senders(std::uint16_t rx_queue) {
  const std::uint32_t step = hardware_.rx_queues;
  for (std::uint32_t i = rx_queue; i < hardware_.tx_queues; i += step) {
    TxCopies& copies = *tx_[i]->copies;
    if (!copies.busy.load(std::memory_order_relaxed) || !copies.serving.try_lock()) continue;
    // Under the lock: a queue that stops is not served any more when it has had it.
    TxQueue* const queue = served_tx_[i].load(std::memory_order_acquire);
    if (queue != nullptr) send_copies(*queue, *tx_[i]);
    copies.serving.unlock();
  }
}

}  // namespace warpline::vnic
