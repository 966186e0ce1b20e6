// SPDX-License-Identifier: Apache-2.0
// IPv6 and its extension headers: one verdict in whatever segments, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  const FrameBytes options{60, 1, 5, 2, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0};
  const FrameBytes routing{44, 2, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const FrameBytes fragment{51, 0, 0, 0, 0, 0, 0, 1};
  const FrameBytes authentication{99, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
  const FrameBytes destination{43, 0, 1, 4, 0, 0, 0, 0};
  FrameBytes chain = ipv6_frame(kExtensionHopByHop, options + destination + routing + fragment + authentication);
  FrameBytes plain = ipv6_frame(99, counting(16));
  for (FrameBytes* frame : {&chain, &plain}) frame->erase(frame->begin(), frame->begin() + 14);
  FrameBytes bytes = input.frame({chain, plain});
  SegmentedFrame exact(bytes);
  Ipv6Header header;
  const Verdict verdict = parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  const ParsedFrame parsed = parse_in_frame(kEtherTypeIpv6, bytes, cuts);
  if (verdict != Verdict::forward) {
    require(parsed.verdict == verdict, "the datagram and the frame have one verdict");
    return 0;
  }
  FrameBytes rebuilt(40);
  emit(header, rebuilt.data());
  require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");

  const std::uint32_t end = 40U + header.payload_length;
  SegmentedFrame pieces(bytes, cuts);
  Ipv6Chain one;
  Ipv6Chain other;
  const Verdict walked = walk_ipv6_extensions(exact.ref(), 40, end, header.next_header, one);
  require(walked == walk_ipv6_extensions(pieces.ref(), 40, end, header.next_header, other),
          "segments do not change the verdict on the chain");
  require((parsed.l3 == L3Kind::ipv6) == (walked == Verdict::forward), "IPv6 is told where its chain is well formed");
  if (walked != Verdict::forward) {
    require(parsed.verdict == walked, "the chain and the frame have one verdict");
    return 0;
  }
  require(one.offset == other.offset && one.protocol == other.protocol, "segments do not change where the chain ends");
  require(one.offset <= end && parsed.l3_length == one.offset, "the chain ends within the datagram");
  require(one.fragment == parsed.fragment && one.source_routed == parsed.source_routed, "what the chain said is told");
  return 0;
}
