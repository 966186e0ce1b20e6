// SPDX-License-Identifier: Apache-2.0
// ICMP, ICMPv6 and neighbour discovery: one verdict in one piece, in segments and in a frame.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;
using packet::operator+;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  const packet::FrameBytes option{1, 1, 2, 0, 0, 0, 0, 1};
  const packet::FrameBytes solicitation =
      packet::icmp_message(packet::kNeighbourSolicitation, packet::counting(16)) + option + option;
  const packet::FrameBytes bytes =
      input.frame({solicitation, packet::icmp_message(packet::kIcmpv6EchoRequest, packet::counting(5))});
  if (bytes.size() > 0xffff) return 0;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  packet::SegmentedFrame exact(bytes);
  packet::SegmentedFrame pieces(bytes, cuts);

  packet::IcmpHeader header;
  Verdict verdict = packet::parse(exact.ref().data(), length, header);
  if (verdict == Verdict::forward) {
    packet::FrameBytes rebuilt(8);
    packet::emit(header, rebuilt.data());
    require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");
  }
  packet::NeighbourMessage message;
  const Verdict neighbour = packet::parse(exact.ref().data(), length, message);
  require(neighbour == packet::check_neighbour(exact.ref(), 0, length), "view and frame have one verdict");
  require(neighbour == packet::check_neighbour(pieces.ref(), 0, length), "segments do not change the verdict");
  if (neighbour == Verdict::forward) {
    packet::FrameBytes again(message.has_link_layer ? 32 : 24);
    packet::emit(message, again.data());
    packet::NeighbourMessage back;
    require(packet::parse(again.data(), static_cast<std::uint32_t>(again.size()), back) == Verdict::forward,
            "emitted is parsed");
    require(back == message, "the message is emitted as it was");
  }
  const bool discovers = verdict == Verdict::forward && (header.type == packet::kNeighbourSolicitation ||
                                                         header.type == packet::kNeighbourAdvertisement);
  if (discovers) verdict = neighbour;
  packet::FrameBytes datagram = packet::ipv6_frame(packet::kProtocolIcmpv6, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  require(parse_in_frame(packet::kEtherTypeIpv6, datagram, cuts).verdict == verdict,
          "message and frame have one verdict");
  return 0;
}
