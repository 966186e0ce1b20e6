// SPDX-License-Identifier: Apache-2.0
// ARP: the packet alone and the packet in a frame get one verdict, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  packet::ArpPacket request;
  request.sender_mac = packet::kTestSourceMac;
  packet::FrameBytes good = packet::arp_frame(request);
  good.erase(good.begin(), good.begin() + 14);
  const packet::FrameBytes bytes = input.frame({good});
  packet::SegmentedFrame exact(bytes);
  packet::ArpPacket packet;
  const Verdict verdict = packet::parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), packet);
  const packet::ParsedFrame parsed = parse_in_frame(packet::kEtherTypeArp, bytes, cuts);
  require(parsed.verdict == verdict, "the packet and the frame have one verdict");
  require((parsed.l3 == packet::L3Kind::arp) == (verdict == Verdict::forward), "ARP is told where it is well formed");
  if (verdict != Verdict::forward) return 0;
  packet::FrameBytes rebuilt(28);
  packet::emit(packet, rebuilt.data());
  require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "the packet is emitted as it was");
  return 0;
}
