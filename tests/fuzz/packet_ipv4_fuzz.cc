// SPDX-License-Identifier: Apache-2.0
// IPv4: the datagram alone and in a frame get one verdict, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  std::vector<packet::FrameBytes> good;
  for (const packet::FrameBytes& options :
       {packet::FrameBytes{}, packet::FrameBytes{7, 7, 4, 0, 0, 0, 0, 0, 131, 7, 4, 0, 0, 0, 0, 1},
        packet::FrameBytes{68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 148, 4, 0, 0, 136, 4, 0, 0}}) {
    good.push_back(packet::ipv4_frame(99, packet::counting(16), {}, options));
    good.back().erase(good.back().begin(), good.back().begin() + 14);
  }
  packet::FrameBytes bytes = input.frame(good);
  packet::SegmentedFrame exact(bytes);
  packet::Ipv4Header header;
  const Verdict verdict = packet::parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  const packet::ParsedFrame parsed = parse_in_frame(packet::kEtherTypeIpv4, bytes, cuts);
  require((parsed.l3 == packet::L3Kind::ipv4) == (verdict == Verdict::forward), "IPv4 is told where it is well formed");
  if (verdict != Verdict::forward) {
    require(parsed.verdict == verdict, "the datagram and the frame have one verdict");
    return 0;
  }
  require(parsed.l3_length == 20U + header.options_length, "the header's length is that of its options and 20");
  require(parsed.fragment == (header.more_fragments || header.fragment_offset != 0), "a fragment is told");
  packet::FrameBytes rebuilt(20U + header.options_length);
  packet::emit(header, rebuilt.data());
  require(packet::checksum(rebuilt.data(), static_cast<std::uint32_t>(rebuilt.size())) == 0,
          "the emitted checksum is right");
  bytes.resize(rebuilt.size());
  bytes[packet::Ipv4View::kFragment] &= 0x7f;  // the reserved flag has no field
  std::copy_n(rebuilt.begin() + packet::Ipv4View::kChecksum, 2, bytes.begin() + packet::Ipv4View::kChecksum);
  require(rebuilt == bytes, "the header is emitted as it was");
  return 0;
}
