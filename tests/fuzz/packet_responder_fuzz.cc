// SPDX-License-Identifier: Apache-2.0
// The responder: an answer is a well-formed frame with right checksums that asks for no other; all else stays as it
// was.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/packet/responder.h"

using namespace warpline;
using packet::operator+;

namespace {

std::vector<packet::FrameBytes> requests() {
  packet::ArpPacket arp;
  arp.sender_mac = packet::kTestSourceMac;
  arp.sender_ip = packet::kTestSourceV4;
  arp.target_ip = packet::kTestDestinationV4;
  packet::FrameBytes message(packet::NeighbourView::kHeaderLength);
  packet::NeighbourMessage solicitation;
  solicitation.target = packet::kTestDestinationV6;
  packet::emit(solicitation, message.data());
  const packet::FrameBytes option{1, 1, 2, 0, 0, 0, 0, 1};
  return {
      packet::arp_frame(arp),
      packet::ipv4_frame(packet::kProtocolIcmp, packet::icmp_message(packet::kIcmpEchoRequest, packet::counting(9))),
      packet::ipv6_frame(packet::kProtocolIcmpv6,
                         packet::icmp_message(packet::kIcmpv6EchoRequest, packet::counting(9))),
      packet::ipv6_frame(packet::kProtocolIcmpv6, message + option, 255),
      packet::tagged(packet::ipv6_frame(packet::kProtocolIcmpv6, message + option + option, 255),
                     packet::kEtherTypeVlan, 5),
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<packet::FrameBytes> all = requests();
  FuzzInput input(data, size);
  const std::uint8_t choice = input.byte();
  const packet::Responder responder =
      choice % 2 == 0 ? packet::Responder(packet::kTestDestinationMac, {packet::kTestDestinationV4, 24})
                      : packet::Responder(packet::kTestDestinationMac, {packet::kTestDestinationV6, 64});
  const auto cuts = input.cuts();
  packet::FrameBytes bytes = input.frame(all);
  if ((choice & 2) != 0) bytes = packet::with_checksums(bytes);

  packet::SegmentedFrame whole(bytes);
  packet::SegmentedFrame pieces(bytes, cuts);
  const bool answered = responder.answer(whole.ref());
  const bool answered_pieces = responder.answer(pieces.ref());
  require(answered || !answered_pieces, "what is answered in segments is answered in one piece");
  require(pieces.bytes() == (answered_pieces ? whole.bytes() : bytes), "segments do not change the answer");
  packet::SegmentedFrame dissected(bytes);
  require(responder.answer(dissected.ref(), packet::parse(dissected.ref())) == answered,
          "the short look misses no request");
  require(dissected.bytes() == whole.bytes(), "nor changes an answer");
  if (!answered) {
    require(whole.bytes() == bytes, "what is not answered stays as it was");
    return 0;
  }
  const packet::FrameBytes reply = whole.bytes();
  require(reply.size() == bytes.size() && reply != bytes, "an answer has the request's length");
  require(packet::load_address<MacAddress>(reply.data() + 6) == packet::kTestDestinationMac,
          "an answer comes from the responder");
  require(packet::verdict_of(whole.ref()) == Verdict::forward, "an answer is well formed, with right checksums");
  require(!responder.answer(whole.ref()), "an answer is not answered");
  return 0;
}
