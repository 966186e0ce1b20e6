// SPDX-License-Identifier: Apache-2.0
// Ethernet and VLAN: what is parsed is emitted again, and swap_macs() is the plain swap.

#include <algorithm>

#include "fuzz/packet_input.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const auto cuts = input.cuts();
  const packet::FrameBytes bytes = input.rest();
  const auto length = static_cast<std::uint32_t>(bytes.size());
  packet::SegmentedFrame whole(bytes);
  packet::SegmentedFrame pieces(bytes, cuts);
  const packet::ParsedFrame parsed = packet::parse(whole.ref());
  require(fields(parsed) == fields(packet::parse(pieces.ref())), "segments do not change what is found");

  packet::EthernetHeader header;
  const Verdict verdict = packet::parse(whole.ref().data(), length, header);
  require((verdict == Verdict::runt) == (length < 14), "a runt is what has less than 14 bytes");
  if (verdict != Verdict::forward) return 0;
  packet::FrameBytes rebuilt(14);
  packet::emit(header, rebuilt.data());
  for (int i = 0; i < parsed.vlan_tags; ++i) {
    const std::size_t at = rebuilt.size();
    packet::VlanTag tag;
    require(packet::parse(bytes.data() + at, static_cast<std::uint32_t>(bytes.size() - at), tag) == Verdict::forward,
            "a tag that the dissector found is whole");
    require(packet::load_be16(bytes.data() + at) == parsed.vlan[i], "control words are kept in order");
    rebuilt.resize(at + 4);
    packet::emit(tag, rebuilt.data() + at);
  }
  require(std::equal(rebuilt.begin(), rebuilt.end(), bytes.begin()), "headers and tags are emitted as they were");

  packet::FrameBytes swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 6, swapped.begin() + 6);
  packet::swap_macs(whole.ref().data());
  require(whole.bytes() == swapped, "swap_macs exchanges the addresses");
  return 0;
}
