// SPDX-License-Identifier: Apache-2.0
// TCP: the segment alone and in a frame get one verdict, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const bool v4 = input.byte() % 2 == 0;
  const auto cuts = input.cuts();
  const packet::FrameBytes syn{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7};
  const packet::FrameBytes sack{1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
  packet::FrameBytes bytes = input.frame({packet::tcp_segment(packet::counting(9)), packet::tcp_segment({}, syn),
                                          packet::tcp_segment(packet::counting(9), sack)});
  if (bytes.size() > 0xffff - 20) return 0;
  packet::SegmentedFrame exact(bytes);
  packet::TcpHeader header;
  const Verdict verdict = packet::parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  packet::FrameBytes datagram =
      v4 ? packet::ipv4_frame(packet::kProtocolTcp, bytes) : packet::ipv6_frame(packet::kProtocolTcp, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  const packet::ParsedFrame parsed =
      parse_in_frame(v4 ? packet::kEtherTypeIpv4 : packet::kEtherTypeIpv6, datagram, cuts);
  require(parsed.verdict == verdict, "segment and frame have one verdict");
  if (verdict != Verdict::forward) return 0;
  require(parsed.l4_length == 20U + header.options_length, "the header's length is that of its options and 20");
  packet::FrameBytes rebuilt(parsed.l4_length);
  packet::emit(header, rebuilt.data());
  bytes.resize(rebuilt.size());
  bytes[packet::TcpView::kDataOffset] &= 0xf0;  // the reserved bits have no field
  require(rebuilt == bytes, "the header is emitted as it was");
  return 0;
}
