// SPDX-License-Identifier: Apache-2.0
// UDP: the datagram alone and in a frame get one verdict, what is parsed is emitted again, and a frame made around any
// payload is right.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/packet/udp_frame.h"

using namespace warpline;
using packet::operator+;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const bool v4 = input.byte() % 2 == 0;
  const auto cuts = input.cuts();
  const packet::FrameBytes bytes = input.frame({packet::udp_datagram(packet::counting(9))});
  if (bytes.size() > packet::kMaxUdpPayload) return 0;
  packet::SegmentedFrame exact(bytes);
  packet::UdpHeader header;
  const Verdict verdict = packet::parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  packet::FrameBytes datagram =
      v4 ? packet::ipv4_frame(packet::kProtocolUdp, bytes) : packet::ipv6_frame(packet::kProtocolUdp, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  const packet::ParsedFrame parsed =
      parse_in_frame(v4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6, datagram, cuts);
  require(parsed.verdict == verdict, "datagram and frame have one verdict");
  if (verdict == Verdict::forward) {
    require(parsed.payload_length == header.length - 8U, "the payload is what the length says");
    packet::FrameBytes rebuilt(8);
    packet::emit(header, rebuilt.data());
    require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");
  }

  packet::UdpFrame around;
  around.source = v4 ? IpAddress{packet::kTestSourceV4} : IpAddress{packet::kTestSourceV6};
  around.destination = v4 ? IpAddress{packet::kTestDestinationV4} : IpAddress{packet::kTestDestinationV6};
  packet::FrameBytes made = packet::FrameBytes(packet::udp_headers_length(around)) + bytes;
  require(packet::emit(around, made) == packet::udp_headers_length(around), "the headers fit");
  packet::SegmentedFrame pieces(made, cuts);
  require(packet::verdict_of(pieces.ref()) == Verdict::forward,
          "the made frame's checksums are right, in segments too");
  return 0;
}
