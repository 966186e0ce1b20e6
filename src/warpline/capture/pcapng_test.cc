// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/pcapng.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::capture {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes below are those of such a processor");

using Bytes = std::vector<std::uint8_t>;

/// Bytes written in hexadecimal; blanks part them.
Bytes hex(const std::string& text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != '\n') digits += c;
    if (digits.size() != 2) continue;
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}

TEST(Pcapng, SectionHeader) {
  Bytes out;
  append_section_header(out, "warpline 1");
  EXPECT_EQ(out, hex("0a0d0d0a 30000000 4d3c2b1a 0100 0000 ffffffffffffffff"
                     "0400 0a00 776172706c696e652031 0000  0000 0000 30000000"));
}

TEST(Pcapng, Interface) {
  Bytes out;
  append_interface(out, "net0", 256);
  EXPECT_EQ(out, hex("01000000 28000000 0100 0000 00010000"
                     "0200 0400 6e657430  0900 0100 09 000000  0000 0000 28000000"));
}

TEST(Pcapng, PacketWithAComment) {
  const Bytes bytes = {1, 2, 3, 4, 5};
  Bytes out = {0xee};  // what is there stays
  append_packet(out, {.interface = 1,
                      .time_ns = 0x0102030405060708,
                      .length = 64,
                      .bytes = bytes,
                      .direction = Direction::outbound,
                      .queue = 3,
                      .comment = "runt"});
  EXPECT_EQ(out, hex("ee 06000000 44000000 01000000 04030201 08070605 05000000 40000000 0102030405 000000"
                     "0200 0400 02000000  0600 0400 03000000  0100 0400 72756e74  0000 0000 44000000"));
}

TEST(Pcapng, PacketWithoutBytesOrComment) {
  Bytes out;
  append_packet(out, {.length = 60});
  EXPECT_EQ(out, hex("06000000 34000000 00000000 00000000 00000000 00000000 3c000000"
                     "0200 0400 01000000  0600 0400 00000000  0000 0000 34000000"));
}

TEST(Pcapng, Filler) {
  Bytes out;
  append_filler(out, kLeastFiller);
  append_filler(out, 28);
  EXPECT_EQ(out, hex("04000000 10000000 0000 0000 10000000"
                     "04000000 1c000000 0080 0800 0000000000000000 0000 0000 1c000000"));
}

std::uint32_t word(const Bytes& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

WARPLINE_PROPERTY(Pcapng, BlocksAreAsLongAsTheySay, (const std::vector<Bytes>& packets, const std::string& comment)) {
  Bytes out;
  std::vector<std::size_t> ends;
  for (const Bytes& packet : packets) {
    const PacketBlock block{.length = static_cast<std::uint32_t>(packet.size()), .bytes = packet, .comment = comment};
    const std::size_t before = out.size();
    append_packet(out, block);
    RC_ASSERT(out.size() - before == size_of(block));
    ends.push_back(out.size());
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    RC_ASSERT(word(out, at) == 6U);
    const std::uint32_t length = word(out, at + 4);
    RC_ASSERT(length % 4 == 0U);
    RC_ASSERT(at + length == ends[i]);
    RC_ASSERT(word(out, ends[i] - 4) == length);
    RC_ASSERT(std::equal(packets[i].begin(), packets[i].end(), out.begin() + static_cast<std::ptrdiff_t>(at) + 28));
    at = ends[i];
  }
}

}  // namespace
}  // namespace warpline::capture
