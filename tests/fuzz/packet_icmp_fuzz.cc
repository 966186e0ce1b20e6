// SPDX-License-Identifier: Apache-2.0
// ICMP, ICMPv6 and neighbour discovery: one verdict in one piece, in segments and in a frame.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  const FrameBytes option{1, 1, 2, 0, 0, 0, 0, 1};
  const FrameBytes solicitation = icmp_message(kNeighbourSolicitation, counting(16)) + option + option;
  const FrameBytes bytes = input.frame({solicitation, icmp_message(kIcmpv6EchoRequest, counting(5))});
  if (bytes.size() > 0xffff) return 0;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  SegmentedFrame exact(bytes);
  SegmentedFrame pieces(bytes, cuts);

  IcmpHeader header;
  Verdict verdict = parse(exact.ref().data(), length, header);
  if (verdict == Verdict::forward) {
    FrameBytes rebuilt(8);
    emit(header, rebuilt.data());
    require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the header is emitted as it was");
  }
  NeighbourMessage message;
  const Verdict neighbour = parse(exact.ref().data(), length, message);
  require(neighbour == check_neighbour(exact.ref(), 0, length), "view and frame have one verdict");
  require(neighbour == check_neighbour(pieces.ref(), 0, length), "segments do not change the verdict");
  if (neighbour == Verdict::forward) {
    FrameBytes again(message.has_link_layer ? 32 : 24);
    emit(message, again.data());
    NeighbourMessage back;
    require(parse(again.data(), static_cast<std::uint32_t>(again.size()), back) == Verdict::forward,
            "emitted is parsed");
    require(back == message, "the message is emitted as it was");
  }
  const bool discovers =
      verdict == Verdict::forward && (header.type == kNeighbourSolicitation || header.type == kNeighbourAdvertisement);
  if (discovers) verdict = neighbour;
  FrameBytes datagram = ipv6_frame(kProtocolIcmpv6, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  require(parse_in_frame(kEtherTypeIpv6, datagram, cuts).verdict == verdict, "message and frame have one verdict");
  return 0;
}
