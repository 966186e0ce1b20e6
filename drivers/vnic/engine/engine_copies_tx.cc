// SPDX-License-Identifier: Apache-2.0
// Frames that a copy engine gathers from the program's buffers: each goes on to the wire when its bytes are there.

#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"

namespace warpline::vnic {

/// Begins the copies of what is posted, as far as one batch and the memory hold. Returns descriptors.
std::uint32_t Engine::gather_posted(TxQueue& queue, TxState& state) {
  TxCopies& copies = *state.copies;
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.fetched;
  std::uint32_t pending = posted;
  while (pending != 0) {
    Chain chain = follow(queue, state, pending);
    if (chain.fate == Chain::Fate::incomplete) break;
    if (chain.fate == Chain::Fate::whole && chain.pieces > CopyLane::kMostCopies) chain.fate = Chain::Fate::malformed;
    const bool whole = chain.fate == Chain::Fate::whole;
    if (!copies.lane.takes(whole ? chain.pieces : 0)) break;
    std::uint8_t* const room = whole ? copies.room(chain.length) : nullptr;
    if (whole && room == nullptr) break;
    if (usable(queue, state, chain)) {
      std::uint8_t* to = room;
      std::uint16_t at = chain.first;
      for (std::uint32_t i = 0; i < chain.pieces; ++i, at = advance(at, queue.size)) {
        const TxDescriptor& piece = queue.ring[at];
        copies.lane.add(to, reinterpret_cast<const void*>(piece.address), tx_length(piece.word));
        to += tx_length(piece.word);
      }
      copies.push(room, chain.length, chain.word);
    }
    queue.fetch_at = static_cast<std::uint16_t>((chain.first + chain.pieces) % queue.size);
    pending -= chain.pieces;
    copies.lane.note(chain.pieces, whole ? 1 : 0, copies.position);
  }
  queue.fetched += posted - pending;
  return posted - pending;
}

/// Sends what has landed. Returns frames that left.
std::uint32_t Engine::land(TxQueue& queue, TxCopies& copies) {
  copies.lane.look();
  const CopyLane::Batch* batch = copies.lane.landed();
  if (batch == nullptr) return 0;
  const bool swallows = hardware_.args.wire == WireKind::fixed;
  const std::uint64_t now = device_nanos();
  std::uint32_t frames = 0;
  std::uint64_t bytes = 0;
  SuppliedAddresses::Judged judged;
  if (!swallows) hardware_.egress.lock();
  for (; batch != nullptr; batch = copies.lane.landed()) {
    for (std::uint32_t left = batch->frames; left != 0; --left) {
      const TxCopies::Frame& frame = copies.pop();
      if (swallows) {
        supplied_.judge(frame.bytes, frame.length, judged);
      } else if (!send_gathered(queue, frame.bytes, frame.length, frame.word, now)) {
        continue;
      }
      ++frames;
      bytes += frame.length;
    }
    copies.landed = batch->position;
    complete(queue, batch->descriptors);
    copies.lane.pop();
  }
  if (!swallows) hardware_.egress.unlock();
  queue.device_counts.add(Count::tx_packets, frames);
  queue.device_counts.add(Count::tx_bytes, bytes);
  judged.count(queue.device_counts);
  return frames;
}

/// After a failure: nothing of what is under way or posted leaves, all of it is completed.
void Engine::lose(TxQueue& queue, TxState& state) {
  TxCopies& copies = *state.copies;
  while (const CopyLane::Batch* const batch = copies.lane.lost()) {
    queue.device_counts.add(Count::tx_copy_failed, batch->frames);
    complete(queue, batch->descriptors);
    copies.lane.pop();
  }
  copies.begin = copies.end;
  copies.landed = copies.position;
  for (;;) {
    const Chain chain = follow(queue, state, queue.posted.load(std::memory_order_acquire) - queue.fetched);
    if (chain.fate == Chain::Fate::incomplete) return;
    if (usable(queue, state, chain)) queue.device_counts.add(Count::tx_copy_failed);
    queue.fetch_at = static_cast<std::uint16_t>((chain.first + chain.pieces) % queue.size);
    queue.fetched += chain.pieces;
    complete(queue, chain.pieces);
  }
}

/// Under copies.serving.
std::uint32_t Engine::send_copies(TxQueue& queue, TxState& state) {
  TxCopies& copies = *state.copies;
  const auto waiting = [&] { return queue.posted.load(std::memory_order_acquire) - queue.fetched; };
  std::uint32_t sent = 0;
  std::uint32_t landed = 0;
  do {
    while (copies.lane.submit() && gather_posted(queue, state) != 0) {
    }
    landed = land(queue, copies);
    sent += landed;
  } while (landed != 0 && waiting() != 0);
  if (copies.lane.failed()) [[unlikely]]
    lose(queue, state);
  copies.busy.store(copies.lane.busy() || waiting() != 0, std::memory_order_relaxed);
  return sent;
}

}  // namespace warpline::vnic
