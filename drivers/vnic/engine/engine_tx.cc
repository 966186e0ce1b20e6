// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "vnic/engine/engine_state.h"
#include "vnic/engine/hardware.h"
#include "vnic/wire/tx_checksum.h"
#include "warpline/base/give_way.h"

namespace warpline::vnic {
Engine::Chain Engine::follow(const TxQueue& queue, TxState& state, std::uint32_t pending) const {
  Chain chain;
  chain.first = queue.fetch_at;
  chain.word = queue.ring[chain.first].word;
  bool mapped = true;
  for (std::uint16_t at = chain.first; chain.pieces < pending; at = advance(at, queue.size)) {
    const TxDescriptor& piece = queue.ring[at];
    const std::uint32_t length = tx_length(piece.word);
    mapped = mapped && (length == 0 || hardware_.iommu.allows(piece.address, length, state.memory));
    chain.length += length;
    ++chain.pieces;
    if ((piece.word & kTxReport) != 0) {
      ++chain.reports;
      chain.report_at = at;
    }
    if ((piece.word & kTxEnd) == 0) continue;
    if (state.skipping || chain.length == 0 || chain.length > kMaxFrame) {
      chain.fate = Chain::Fate::malformed;
    } else {
      chain.fate = mapped ? Chain::Fate::whole : Chain::Fate::unmapped;
    }
    return chain;
  }
  // A ring full of pieces: what more there is of the frame is skipped, and its end counts as malformed.
  if (chain.pieces == queue.size) {
    state.skipping = true;
    chain.fate = Chain::Fate::endless;
  }
  return chain;
}

/// Writes back what was asked for among the next `descriptors`, whose buffers are the driver's again.
void Engine::complete(TxQueue& queue, std::uint32_t descriptors) {
  for (; descriptors != 0; --descriptors) {
    std::uint64_t& word = queue.ring[queue.complete_at].word;
    if ((word & kTxReport) != 0) write_back(word, word | kTxDone);
    queue.complete_at = advance(queue.complete_at, queue.size);
  }
}

bool Engine::usable(TxQueue& queue, TxState& state, const Chain& chain) {
  if (chain.fate == Chain::Fate::whole) [[likely]]
    return true;
  if (chain.fate == Chain::Fate::endless) return false;
  queue.device_counts.add(chain.fate == Chain::Fate::unmapped ? Count::tx_iommu_fault : Count::tx_malformed);
  state.skipping = false;
  return false;
}

void Engine::gather(const TxQueue& queue, const Chain& chain, std::uint8_t* out) const {
  std::uint16_t at = chain.first;
  for (std::uint32_t i = 0; i < chain.pieces; ++i) {
    const TxDescriptor& piece = queue.ring[at];
    copy_bytes(out, reinterpret_cast<const void*>(piece.address), tx_length(piece.word));
    out += tx_length(piece.word);
    at = advance(at, queue.size);
  }
}

std::uint32_t Engine::send_posted(TxQueue& queue, TxState& state) {
  const std::uint32_t posted = queue.posted.load(std::memory_order_acquire) - queue.fetched;
  if (posted == 0) return 0;
  Egress& egress = hardware_.egress;
  std::uint32_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pending = posted;
  std::uint32_t reports = 0;
  std::uint16_t report_at = 0;
  egress.lock();
  const std::uint64_t now = egress.needs_time() ? device_nanos() : 0;
  // A frame in one piece leaves from where it lies, if nothing has to be changed in it.
  std::uint64_t not_in_place = egress.takes_pieces() ? 0 : std::uint64_t{kTxSums};
  if (egress.changes_frames() || state.skipping) not_in_place = ~std::uint64_t{0};
  while (pending != 0) {
    const TxDescriptor& piece = queue.ring[queue.fetch_at];
    const std::uint32_t length = tx_length(piece.word);
    bool left = false;
    if ((piece.word & (kTxEnd | not_in_place)) == kTxEnd && length - 1 < kMaxFrame &&
        hardware_.iommu.allows(piece.address, length, state.memory) && send_in_place(piece, now, left)) [[likely]] {
      if (left) {
        ++frames;
        bytes += length;
      }
      if ((piece.word & kTxReport) != 0) {
        ++reports;
        report_at = queue.fetch_at;
      }
      queue.fetch_at = advance(queue.fetch_at, queue.size);
      --pending;
      continue;
    }
    const Chain chain = follow(queue, state, pending);
    if (chain.fate == Chain::Fate::incomplete) break;
    if (usable(queue, state, chain) && send_chain(queue, state, chain, now)) {
      ++frames;
      bytes += chain.length;
    }
    reports += chain.reports;
    report_at = chain.reports != 0 ? chain.report_at : report_at;
    queue.fetch_at = static_cast<std::uint16_t>((chain.first + chain.pieces) % queue.size);
    pending -= chain.pieces;
  }
  egress.unlock();
  const std::uint32_t done = posted - pending;
  queue.fetched += done;
  if (reports > 1) {
    complete(queue, done);
  } else {
    if (reports == 1) write_back(queue.ring[report_at].word, queue.ring[report_at].word | kTxDone);
    queue.complete_at = queue.fetch_at;
  }
  queue.device_counts.add(Count::tx_packets, frames);
  queue.device_counts.add(Count::tx_bytes, bytes);
  return frames;
}

/// `left`: whether it could leave. False, and nothing happened: its checksums are not for the receiver to fill in.
inline bool Engine::send_in_place(const TxDescriptor& piece, std::uint64_t now_nanos, bool& left) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(piece.address);
  const std::uint32_t length = tx_length(piece.word);
  if ((piece.word & kTxSums) == 0) {
    left = hardware_.egress.send(bytes, length, now_nanos);
    return true;
  }
  Segment segment{bytes, length, 0, Verdict::forward};
  left = hardware_.egress.send({&segment, 1, length}, piece.word, now_nanos) == Ingress::Taken::yes;
  return left;
}

/// False: it could not leave.
bool Engine::send_chain(TxQueue& queue, TxState& state, const Chain& chain, std::uint64_t now_nanos) {
  if (chain.pieces <= kMaxSegments && hardware_.egress.takes_pieces()) {
    std::array<Segment, kMaxSegments> segments;
    std::uint16_t at = chain.first;
    for (std::uint16_t i = 0; i < chain.pieces; ++i, at = advance(at, queue.size)) {
      const TxDescriptor& piece = queue.ring[at];
      segments[i] = {reinterpret_cast<std::uint8_t*>(piece.address), tx_length(piece.word), 0, Verdict::forward};
    }
    const FrameRef frame{segments.data(), static_cast<std::uint16_t>(chain.pieces), chain.length};
    const Ingress::Taken taken = hardware_.egress.send(frame, chain.word, now_nanos);
    if (taken == Ingress::Taken::unfit) queue.device_counts.add(Count::tx_malformed);
    if (taken != Ingress::Taken::unfinished) return taken == Ingress::Taken::yes;
  }
  gather(queue, chain, state.bytes.data());
  return send_gathered(queue, state.bytes.data(), chain.length, chain.word, now_nanos);
}

bool Engine::send_gathered(TxQueue& queue, std::uint8_t* frame, std::uint32_t length, std::uint64_t word,
                           std::uint64_t now_nanos) {
  if ((word & kTxSums) == 0) return hardware_.egress.send(frame, length, now_nanos);
  Segment segment{frame, length, 0, Verdict::forward};
  const DeviceSums sums = sum_up({&segment, 1, length}, word);
  if (sums.fits) {
    sums.store(frame);
    return hardware_.egress.send(frame, length, now_nanos, sums);
  }
  queue.device_counts.add(Count::tx_malformed);
  return false;
}

std::uint32_t Engine::serve_tx(TxQueue& queue) {
  if (fixed_) return serve_tx_static(queue);
  TxState& state = *tx_[queue.id];
  if (!copies_) [[likely]]
    return send_posted(queue, state);
  const std::scoped_lock held(state.copies->serving);
  return send_copies(queue, state);
}

void Engine::drain(TxQueue& queue, TxState& state) {
  for (;;) {
    const std::uint32_t before = queue.fetched;
    serve_tx(queue);
    if (copies_ && state.copies->lane.busy()) {
      give_way();
    } else if (queue.fetched == before) {
      return;
    }
  }
}

int Engine::reset(TxQueue& queue) {
  TxState& state = *tx_[queue.id];
  state.memory = {};
  state.skipping = false;
  queue.fetched = 0;
  queue.fetch_at = queue.complete_at = 0;
  if (copies_) {
    if (const int error = state.copies->lane.open(copy_engine_, RTE_NET_VNIC_TX, queue.id); error != 0) return error;
    state.copies->begin = state.copies->end = 0;
    state.copies->position = state.copies->landed = 0;
  }
  served_tx_[queue.id].store(&queue, std::memory_order_release);
  return 0;
}

void Engine::finish(TxQueue& queue) {
  TxState& state = *tx_[queue.id];
  {
    // Nobody looks after it from now on.
    std::unique_lock<SpinLock> held;
    if (copies_) held = std::unique_lock(state.copies->serving);
    served_tx_[queue.id].store(nullptr, std::memory_order_release);
  }
  wait_for_pass();
  drain(queue, state);
  if (copies_) state.copies->lane.close();
}

}  // namespace warpline::vnic
