// SPDX-License-Identifier: Apache-2.0
// Whole frames: in one piece and in segments the same is found, the same checksums are right and the same are written.

#include "fuzz/packet_input.h"

using namespace warpline;

namespace {

std::vector<FrameBytes> good_frames() {
  const FrameBytes extension{17, 0, 1, 4, 0, 0, 0, 0};
  const FrameBytes udp = udp_datagram(counting(9));
  const FrameBytes tcp = tcp_segment(counting(9), {2, 4, 5, 0xb4});
  return {
      ipv4_frame(kProtocolUdp, udp),
      ipv4_frame(kProtocolTcp, tcp, {}, {148, 4, 0, 0}),
      ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, counting(9))),
      ipv6_frame(kExtensionDestination, extension + udp),
      ipv6_frame(kProtocolTcp, tcp),
      ipv6_frame(kProtocolIcmpv6,
                 icmp_message(kNeighbourSolicitation, counting(16)) + FrameBytes{1, 1, 2, 0, 0, 0, 0, 1}),
      tagged(tagged(ipv4_frame(kProtocolUdp, udp), kEtherTypeVlan, 5), kEtherTypeService, 6),
      arp_frame({}),
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<FrameBytes> kGood = good_frames();
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  FrameBytes bytes = input.frame(kGood);
  SegmentedFrame whole(bytes);
  SegmentedFrame pieces(bytes, cuts);
  const ParsedFrame parsed = parse(whole.ref());
  require(fields(parsed) == fields(parse(pieces.ref())), "segments do not change what is found");
  require(parsed.payload_offset + parsed.payload_length <= bytes.size(), "the payload ends within the frame");
  require(parsed.l4 == L4Kind::none || parsed.l4_offset + l4_total(parsed) <= bytes.size(), "so does the transport");
  const Verdict verdict = verify_checksums(whole.ref(), parsed);
  require(verdict == verify_checksums(pieces.ref(), parsed), "segments do not change which checksums are right");
  if (is_drop(parsed.verdict)) {
    require(verdict == parsed.verdict, "a malformed frame stays one");
    return 0;
  }
  update_checksums(whole.ref(), parsed);
  update_checksums(pieces.ref(), parsed);
  require(whole.bytes() == pieces.bytes(), "segments do not change which checksums are written");
  require(verdict_of(pieces.ref()) == Verdict::forward, "written checksums are right");
  return 0;
}
