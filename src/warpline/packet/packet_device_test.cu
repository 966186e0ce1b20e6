// SPDX-License-Identifier: Apache-2.0
// Holds the packet module to what a GPU can run: nothing here may need more than WARPLINE_HD gives.

#include "warpline/base/frame.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/responder.h"
#include "warpline/packet/verify.h"

namespace warpline::packet {

/// One thread a frame. `firsts[i]` is the descriptor of the first segment of frame i, whose verdict is written to it.
__global__ void judge_frames(Segment* const* firsts, std::uint32_t count, Responder responder) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const FrameRef frame = frame_at(firsts[i]);
  const ParsedFrame parsed = parse(frame);
  Verdict verdict = verify_checksums(frame, parsed);
  if (verdict == Verdict::forward && responder.answer(frame, parsed)) {
    verdict = Verdict::reply;
  } else if (verdict == Verdict::forward && frame.head_length() >= EthernetView::kHeaderLength) {
    swap_macs(frame.data());
    update_checksums(frame, parsed);
  }
  firsts[i]->verdict = verdict;
}

}  // namespace warpline::packet
