// SPDX-License-Identifier: Apache-2.0
// The responder: an answer is a well-formed frame with right checksums that asks for no other; all else stays as it
// was.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/packet/responder.h"

using namespace warpline;

namespace {

std::vector<FrameBytes> requests() {
  ArpPacket arp;
  arp.sender_mac = kTestSourceMac;
  arp.sender_ip = kTestSourceV4;
  arp.target_ip = kTestDestinationV4;
  FrameBytes message(NeighbourView::kHeaderLength);
  NeighbourMessage solicitation;
  solicitation.target = kTestDestinationV6;
  emit(solicitation, message.data());
  const FrameBytes option{1, 1, 2, 0, 0, 0, 0, 1};
  return {
      arp_frame(arp),
      ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, counting(9))),
      ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, counting(9))),
      ipv6_frame(kProtocolIcmpv6, message + option, 255),
      tagged(ipv6_frame(kProtocolIcmpv6, message + option + option, 255), kEtherTypeVlan, 5),
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<FrameBytes> kRequests = requests();
  FuzzInput input(data, size);
  const std::uint8_t choice = input.byte();
  const Responder responder = choice % 2 == 0 ? Responder(kTestDestinationMac, {kTestDestinationV4, 24})
                                              : Responder(kTestDestinationMac, {kTestDestinationV6, 64});
  const auto cuts = input.cuts();
  FrameBytes bytes = input.frame(kRequests);
  if ((choice & 2) != 0) bytes = with_checksums(bytes);

  SegmentedFrame whole(bytes);
  SegmentedFrame pieces(bytes, cuts);
  const bool answered = responder.answer(whole.ref());
  const bool answered_pieces = responder.answer(pieces.ref());
  require(answered || !answered_pieces, "what is answered in segments is answered in one piece");
  require(pieces.bytes() == (answered_pieces ? whole.bytes() : bytes), "segments do not change the answer");
  SegmentedFrame dissected(bytes);
  require(responder.answer(dissected.ref(), parse(dissected.ref())) == answered, "the short look misses no request");
  require(dissected.bytes() == whole.bytes(), "nor changes an answer");
  if (!answered) {
    require(whole.bytes() == bytes, "what is not answered stays as it was");
    return 0;
  }
  const FrameBytes reply = whole.bytes();
  require(reply.size() == bytes.size() && reply != bytes, "an answer has the request's length");
  require(load_address<MacAddress>(reply.data() + 6) == kTestDestinationMac, "an answer comes from the responder");
  require(verdict_of(whole.ref()) == Verdict::forward, "an answer is well formed, with right checksums");
  require(!responder.answer(whole.ref()), "an answer is not answered");
  return 0;
}
