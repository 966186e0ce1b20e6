// SPDX-License-Identifier: Apache-2.0
// UDP: the datagram alone and in a frame get one verdict, what is parsed is emitted again, and a frame made around any
// payload is right.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/packet/udp_frame.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const bool v4 = input.byte() % 2 == 0;
  const auto cuts = input.cuts();
  const FrameBytes bytes = input.frame({udp_datagram(counting(9))});
  if (bytes.size() > kMaxUdpPayload) return 0;
  SegmentedFrame exact(bytes);
  UdpHeader header;
  const Verdict verdict = parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  FrameBytes datagram = v4 ? ipv4_frame(kProtocolUdp, bytes) : ipv6_frame(kProtocolUdp, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  const ParsedFrame parsed = parse_in_frame(v4 ? kEtherTypeIpv4 : kEtherTypeIpv6, datagram, cuts);
  require(parsed.verdict == verdict, "datagram and frame have one verdict");
  if (verdict == Verdict::forward) {
    require(parsed.payload_length == header.length - 8U, "the payload is what the length says");
    FrameBytes rebuilt(8);
    emit(header, rebuilt.data());
    require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");
  }

  UdpFrame around;
  around.source = v4 ? IpAddress{kTestSourceV4} : IpAddress{kTestSourceV6};
  around.destination = v4 ? IpAddress{kTestDestinationV4} : IpAddress{kTestDestinationV6};
  FrameBytes made = FrameBytes(udp_headers_length(around)) + bytes;
  require(emit(around, made) == udp_headers_length(around), "the headers fit");
  SegmentedFrame pieces(made, cuts);
  require(verdict_of(pieces.ref()) == Verdict::forward, "the made frame's checksums are right, in segments too");
  return 0;
}
