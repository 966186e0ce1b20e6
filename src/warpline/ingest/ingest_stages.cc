// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_stages.h"

namespace warpline::ingest {

Result<IngestParts> make_ingest_parts(const forward::StageParts& parts, const IngestSettings& settings, bool pulls) {
  const datapath::ForwardSettings& forward = parts.settings.forward;
  const std::uint64_t paths = parts.layout.paths.size();
  const Bytes budget = share_of_budget(settings, paths).packets;
  const std::uint64_t slot_bytes = batch_bytes(forward.burst, parts.mtu);
  IngestParts made{parts,
                   nullptr,
                   nullptr,
                   {.max_frame = longest_frame(parts.mtu), .keeps_mbufs = settings.transmit},
                   settings.transmit,
                   settings.adaptive};
  const bool copied = copies(settings.path);
  if (parts.path.responder && !copied && parts.settings.pool.memory == memory::MemoryKind::device) {
    return usage_error("an address with packets in GPU memory", "the CPU answers for it, and cannot read them",
                       "use --path copy or zerocopy, or leave the address out");
  }
  // In GPU memory each slot has its ready word.
  const std::uint64_t word_bytes = copied && runs_on_gpu(forward.engine) ? sizeof(RingWord) : 0;
  WARPLINE_TRY(const std::uint32_t slots, slots_within(budget, slot_bytes + word_bytes, forward.ring_slots));
  const std::uint16_t pieces = copied ? 1 : kMaxSegments;
  WARPLINE_TRY(made.ring, handoff::BurstRing::create({.slots = slots,
                                                      .packets = forward.burst,
                                                      .segments = static_cast<std::uint16_t>(forward.burst * pieces)}));
  if (!copied) return made;
  BatchSlotsShape shape{
      .slots = slots, .slot_bytes = slot_bytes, .gpu = {}, .naive = settings.path == IngestPath::copy_naive};
  if (runs_on_gpu(forward.engine)) shape.gpu = forward.gpu_of(parts.layout.paths[parts.index].queue);
  shape.pulled = (pulls || forward.engine == EngineKind::persistent) && !shape.naive;
  WARPLINE_TRY(made.slots, BatchSlots::create(shape));
  return made;
}

}  // namespace warpline::ingest
