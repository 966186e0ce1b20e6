// SPDX-License-Identifier: Apache-2.0
// IPv6 and its extension headers: one verdict in whatever segments, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;
using packet::operator+;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  const packet::FrameBytes options{60, 1, 5, 2, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0};
  const packet::FrameBytes routing{44, 2, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const packet::FrameBytes fragment{51, 0, 0, 0, 0, 0, 0, 1};
  const packet::FrameBytes authentication{99, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
  const packet::FrameBytes destination{43, 0, 1, 4, 0, 0, 0, 0};
  packet::FrameBytes chain =
      packet::ipv6_frame(packet::kExtensionHopByHop, options + destination + routing + fragment + authentication);
  packet::FrameBytes plain = packet::ipv6_frame(99, packet::counting(16));
  for (packet::FrameBytes* frame : {&chain, &plain}) frame->erase(frame->begin(), frame->begin() + 14);
  packet::FrameBytes bytes = input.frame({chain, plain});
  packet::SegmentedFrame exact(bytes);
  packet::Ipv6Header header;
  const Verdict verdict = packet::parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  const packet::ParsedFrame parsed = parse_in_frame(packet::kEtherTypeIpv6, bytes, cuts);
  if (verdict != Verdict::forward) {
    require(parsed.verdict == verdict, "the datagram and the frame have one verdict");
    return 0;
  }
  packet::FrameBytes rebuilt(40);
  packet::emit(header, rebuilt.data());
  require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");

  const std::uint32_t end = 40U + header.payload_length;
  packet::SegmentedFrame pieces(bytes, cuts);
  packet::Ipv6Chain one;
  packet::Ipv6Chain other;
  const Verdict walked = packet::walk_ipv6_extensions(exact.ref(), 40, end, header.next_header, one);
  require(walked == packet::walk_ipv6_extensions(pieces.ref(), 40, end, header.next_header, other),
          "segments do not change the verdict on the chain");
  require((parsed.l3 == packet::L3Kind::ipv6) == (walked == Verdict::forward),
          "IPv6 is told where its chain is well formed");
  if (walked != Verdict::forward) {
    require(parsed.verdict == walked, "the chain and the frame have one verdict");
    return 0;
  }
  require(one.offset == other.offset && one.protocol == other.protocol, "segments do not change where the chain ends");
  require(one.offset <= end && parsed.l3_length == one.offset, "the chain ends within the datagram");
  require(one.fragment == parsed.fragment && one.source_routed == parsed.source_routed, "what the chain said is told");
  return 0;
}
