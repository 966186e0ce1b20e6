// SPDX-License-Identifier: Apache-2.0
// Whole frames: in one piece and in segments the same is found, the same checksums are right and the same are written.

#include "fuzz/packet_input.h"

using namespace warpline;
using packet::operator+;

namespace {

std::vector<packet::FrameBytes> good_frames() {
  const packet::FrameBytes extension{17, 0, 1, 4, 0, 0, 0, 0};
  const packet::FrameBytes udp = packet::udp_datagram(packet::counting(9));
  const packet::FrameBytes tcp = packet::tcp_segment(packet::counting(9), {2, 4, 5, 0xb4});
  return {
      packet::ipv4_frame(packet::kProtocolUdp, udp),
      packet::ipv4_frame(packet::kProtocolTcp, tcp, {}, {148, 4, 0, 0}),
      packet::ipv4_frame(packet::kProtocolIcmp, packet::icmp_message(packet::kIcmpEchoRequest, packet::counting(9))),
      packet::ipv6_frame(packet::kExtensionDestination, extension + udp),
      packet::ipv6_frame(packet::kProtocolTcp, tcp),
      packet::ipv6_frame(packet::kProtocolIcmpv6,
                         packet::icmp_message(packet::kNeighbourSolicitation, packet::counting(16)) +
                             packet::FrameBytes{1, 1, 2, 0, 0, 0, 0, 1}),
      packet::tagged(packet::tagged(packet::ipv4_frame(packet::kProtocolUdp, udp), packet::kEtherTypeVlan, 5),
                     packet::kEtherTypeService, 6),
      packet::arp_frame({}),
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<packet::FrameBytes> good = good_frames();
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  packet::FrameBytes bytes = input.frame(good);
  packet::SegmentedFrame whole(bytes);
  packet::SegmentedFrame pieces(bytes, cuts);
  const packet::ParsedFrame parsed = packet::parse(whole.ref());
  require(fields(parsed) == fields(packet::parse(pieces.ref())), "segments do not change what is found");
  require(parsed.payload_offset + parsed.payload_length <= bytes.size(), "the payload ends within the frame");
  require(parsed.l4 == packet::L4Kind::none || parsed.l4_offset + packet::l4_total(parsed) <= bytes.size(),
          "so does the transport");
  const Verdict verdict = packet::verify_checksums(whole.ref(), parsed);
  require(verdict == packet::verify_checksums(pieces.ref(), parsed),
          "segments do not change which checksums are right");
  if (is_drop(parsed.verdict)) {
    require(verdict == parsed.verdict, "a malformed frame stays one");
    return 0;
  }
  packet::update_checksums(whole.ref(), parsed);
  packet::update_checksums(pieces.ref(), parsed);
  require(whole.bytes() == pieces.bytes(), "segments do not change which checksums are written");
  require(packet::verdict_of(pieces.ref()) == Verdict::forward, "written checksums are right");
  return 0;
}
