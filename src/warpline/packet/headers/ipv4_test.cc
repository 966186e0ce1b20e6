// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/ipv4.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

FrameBytes emitted(Ipv4Header header, const FrameBytes& options = {}) {
  header.options_length = static_cast<std::uint8_t>(options.size());
  std::copy(options.begin(), options.end(), header.options);
  FrameBytes bytes(20 + options.size());
  header.total_length = static_cast<std::uint16_t>(bytes.size());
  emit(header, bytes.data());
  return bytes;
}

Verdict check(const FrameBytes& bytes) {
  return Ipv4View::check(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

TEST(Ipv4, BytesOnTheWire) {
  Ipv4Header header;
  header.total_length = 0x73;
  header.dont_fragment = true;
  header.protocol = kProtocolUdp;
  header.source = {{192, 168, 0, 1}};
  header.destination = {{192, 168, 0, 199}};
  FrameBytes bytes(20);
  emit(header, bytes.data());
  EXPECT_EQ(bytes, (FrameBytes{0x45, 0,    0,    0x73, 0,    0,    0x40, 0,    0x40, 0x11,
                               0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7}));
}

TEST(Ipv4, WellFormedOptions) {
  const std::vector<FrameBytes> all = {
      {148, 4, 0, 0},                          // router alert
      {1, 1, 1, 0},                            // no operation, end
      {0, 77, 77, 77},                         // whatever stands behind the end
      {7, 7, 4, 0, 0, 0, 0, 0},                // record route with room for one
      {7, 3, 4, 0},                            // record route without room
      {68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0},  // timestamps
      {30, 2, 30, 2},                          // of no known type
      FrameBytes(40, kIpv4OptionNop),
  };
  for (const FrameBytes& options : all) EXPECT_EQ(check(emitted({}, options)), Verdict::forward);
}

TEST(Ipv4, SourceRouteWithHopsLeft) {
  const auto routed = [](const FrameBytes& options) {
    const FrameBytes bytes = emitted({}, options);
    EXPECT_EQ(check(bytes), Verdict::forward);
    return Ipv4View(bytes.data()).is_source_routed();
  };
  EXPECT_TRUE(routed({131, 7, 4, 10, 0, 0, 1, 0}));
  EXPECT_TRUE(routed({1, 137, 7, 4, 10, 0, 0, 1}));
  EXPECT_FALSE(routed({131, 7, 8, 10, 0, 0, 1, 0}));
  EXPECT_FALSE(routed({7, 7, 4, 10, 0, 0, 1, 0}));
  EXPECT_FALSE(routed({0, 131, 7, 4, 10, 0, 0, 1}));
}

TEST(Ipv4, FragmentsThatFit) {
  Ipv4Header header;
  header.more_fragments = true;
  EXPECT_EQ(check(emitted(header)), Verdict::forward);
  header.more_fragments = false;
  header.fragment_offset = (65535 - 20) / 8;
  EXPECT_EQ(check(emitted(header)), Verdict::forward);
  header.fragment_offset = 8191;
  EXPECT_EQ(check(emitted(header)), Verdict::ip_fragment);
}

TEST(Ipv4, Text) {
  Ipv4Header header;
  header.source = kTestSourceV4;
  header.destination = kTestDestinationV4;
  header.protocol = 17;
  header.total_length = 46;
  EXPECT_EQ(to_string(header), "198.18.0.1 > 198.19.0.1 protocol 17 length 46 ttl 64");
  header.type_of_service = 0xb8;
  header.identification = 7;
  header.dont_fragment = header.more_fragments = true;
  header.fragment_offset = 2;
  header.options_length = 4;
  EXPECT_EQ(to_string(header),
            "198.18.0.1 > 198.19.0.1 protocol 17 length 46 ttl 64 tos 0xb8 id 7 DF MF offset 16 options 4");
}

WARPLINE_PROPERTY(Ipv4Property, EmittedIsParsed,
                  (std::uint8_t tos, std::uint16_t id, bool dont_fragment, std::uint8_t ttl, std::uint8_t protocol)) {
  Ipv4Header header;
  header.type_of_service = tos;
  header.identification = id;
  header.dont_fragment = dont_fragment;
  header.time_to_live = ttl;
  header.protocol = protocol;
  header.source.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 4>>();
  header.destination.bytes = *rc::gen::arbitrary<std::array<std::uint8_t, 4>>();
  header.options_length = static_cast<std::uint8_t>(*rc::gen::inRange(0, 11) * 4);
  std::fill_n(header.options, header.options_length, kIpv4OptionNop);
  const auto payload = *rc::gen::inRange<std::uint32_t>(0, 65536U - 60);
  header.total_length = static_cast<std::uint16_t>(20 + header.options_length + payload);
  header.fragment_offset = payload % 8 == 0 ? *rc::gen::inRange<std::uint16_t>(0, 100) : 0;
  header.more_fragments = payload % 8 == 0 && payload < 60000 && *rc::gen::arbitrary<bool>();
  RC_PRE(header.fragment_offset * 8U + header.total_length <= 65535);

  FrameBytes bytes(20U + header.options_length);
  emit(header, bytes.data());
  RC_ASSERT(checksum(bytes.data(), static_cast<std::uint32_t>(bytes.size())) == 0);
  Ipv4Header back;
  RC_ASSERT(parse(bytes.data(), header.total_length, back) == Verdict::forward);
  header.checksum = back.checksum;
  RC_ASSERT(back == header);
}

}  // namespace
}  // namespace warpline::packet
