// SPDX-License-Identifier: Apache-2.0
// TCP: the segment alone and in a frame get one verdict, and what is parsed is emitted again.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const bool v4 = input.byte() % 2 == 0;
  const auto cuts = input.cuts();
  const FrameBytes syn{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7};
  const FrameBytes sack{1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
  FrameBytes bytes = input.frame({tcp_segment(counting(9)), tcp_segment({}, syn), tcp_segment(counting(9), sack)});
  if (bytes.size() > 0xffff - 20) return 0;
  SegmentedFrame exact(bytes);
  TcpHeader header;
  const Verdict verdict = parse(exact.ref().data(), static_cast<std::uint32_t>(bytes.size()), header);
  FrameBytes datagram = v4 ? ipv4_frame(kProtocolTcp, bytes) : ipv6_frame(kProtocolTcp, bytes);
  datagram.erase(datagram.begin(), datagram.begin() + 14);
  const ParsedFrame parsed = parse_in_frame(v4 ? kEtherTypeIpv4 : kEtherTypeIpv6, datagram, cuts);
  require(parsed.verdict == verdict, "segment and frame have one verdict");
  if (verdict != Verdict::forward) return 0;
  require(parsed.l4_length == 20U + header.options_length, "the header's length is that of its options and 20");
  FrameBytes rebuilt(parsed.l4_length);
  emit(header, rebuilt.data());
  bytes.resize(rebuilt.size());
  bytes[TcpView::kDataOffset] &= 0xf0;  // the reserved bits have no field
  require(rebuilt == bytes, "the header is emitted as it was");
  return 0;
}
