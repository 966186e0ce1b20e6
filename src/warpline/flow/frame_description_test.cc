// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "warpline/base/property_testing.h"

namespace warpline::flow {
namespace {

using ::testing::HasSubstr;

FrameDescription described(std::string_view text) {
  const Result<FrameDescription> parsed = parse_frame_description(text);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message());
  return parsed.ok() ? *parsed : FrameDescription{};
}

std::string refusal(std::string_view text) {
  const Result<FrameDescription> parsed = parse_frame_description(text);
  EXPECT_FALSE(parsed.ok()) << text;
  if (parsed.ok()) return {};
  EXPECT_EQ(parsed.error().kind, ErrorKind::usage);
  EXPECT_FALSE(parsed.error().fix.empty());
  return parsed.error().message();
}

TEST(FrameDescription, FieldsAtFixedPlaces) {
  const FrameDescription description = described("packets=1024,seq=4:32:le,payload=16:1Ki");
  EXPECT_EQ(description.format, HeaderFormat::fixed);
  EXPECT_EQ(description.packets, 1024U);
  EXPECT_EQ(description.sequence, (NumberField{4, 32, ByteOrder::little}));
  EXPECT_EQ(description.payload_offset, 16U);
  EXPECT_EQ(description.payload_length, 1024U);
  EXPECT_EQ(description.window, 4U);
  EXPECT_EQ(description.jump, 4U);
  EXPECT_EQ(description.stream, StreamKind::one);
  EXPECT_EQ(description.frame_bytes(), 1024U * 1024);
  EXPECT_EQ(description.packet_bytes(), 1040U);
}

TEST(FrameDescription, ACounterNeedsNoOffsets) {
  const FrameDescription description = described("format=counter,packets=64,payload=1000");
  EXPECT_EQ(description, described("packets=64,seq=0:64:be,payload=8:1000"));
}

TEST(FrameDescription, HeapsOfSpead) {
  const FrameDescription one = described("format=spead,packets=64,payload=1024");
  EXPECT_EQ(one.packets_per_heap(), 64U);
  EXPECT_EQ(one.heap_bytes, 65536U);
  const FrameDescription uneven = described("format=spead,packets=6,payload=1000,heap=2500,first=900");
  EXPECT_EQ(uneven.packets_per_heap(), 3U);
  EXPECT_EQ(uneven.frame_bytes(), 5000U);
  EXPECT_THAT(refusal("format=spead,packets=7,payload=1000,heap=2500"), HasSubstr("write a multiple of 3"));
  EXPECT_THAT(refusal("packets=7,seq=0:8,payload=8:1000,heap=2500"), HasSubstr("only SPEAD has heaps"));
}

TEST(FrameDescription, TimestampsOfVita49) {
  const FrameDescription description = described("format=vita49,packets=64,payload=1440,step=360,rate=10M");
  EXPECT_EQ(description.step, 360U);
  EXPECT_EQ(description.rate, 10'000'000U);
  EXPECT_THAT(refusal("format=vita49,packets=64,payload=1440"), HasSubstr("step=SAMPLES"));
  EXPECT_THAT(refusal("packets=64,seq=0:64,payload=8:1440,rate=1"), HasSubstr("no timestamp"));
}

TEST(FrameDescription, Streams) {
  EXPECT_EQ(described("packets=4,seq=0:32,payload=8:8,stream=5-tuple").streams, 16U);
  const FrameDescription field = described("packets=4,seq=0:32,payload=8:8,stream=4:12,streams=2");
  EXPECT_EQ(field.stream_field, (NumberField{4, 12, ByteOrder::big}));
  EXPECT_EQ(field.streams, 2U);
  EXPECT_THAT(refusal("packets=4,seq=0:32,payload=8:8,streams=2"), HasSubstr("stream=5-tuple"));
}

TEST(FrameDescription, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(refusal(""), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(refusal("packets=4,seq=0:64"), HasSubstr("'payload' of the frame description: it is missing"));
  EXPECT_THAT(refusal("packets=4,payload=8:8"), HasSubstr("'seq' of the frame description: it is missing"));
  EXPECT_THAT(refusal("seq=0:64,payload=8:8"), HasSubstr("'packets' of the frame description: it is missing"));
  EXPECT_THAT(refusal("packets=0,seq=0:64,payload=8:8"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("packets=1,packets=2,seq=0:64,payload=8:8"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("packet=4,seq=0:64,payload=8:8"), HasSubstr("did you mean packets?"));
  EXPECT_THAT(refusal("packets=4,seq=0:65,payload=8:8"), HasSubstr("1 to 64"));
  EXPECT_THAT(refusal("packets=4,seq=0,payload=8:8"), HasSubstr("OFFSET:BITS"));
  EXPECT_THAT(refusal("packets=4,seq=0:64:xe,payload=8:8"), HasSubstr("OFFSET:BITS"));
  EXPECT_THAT(refusal("packets=4,seq=4:64,payload=8:8"), HasSubstr("ends at byte 12, but the header ends at byte 8"));
  EXPECT_THAT(refusal("packets=4,seq=0:64,payload=8:8,stream=7:16"), HasSubstr("'stream'"));
  EXPECT_THAT(refusal("packets=4,seq=0:64,payload=60000:9000"), HasSubstr("no packet is longer"));
  EXPECT_THAT(refusal("packets=4,seq=0:64,payload=8:0"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("packets=4,seq=0:64,payload=8"), HasSubstr("OFFSET:LEN"));
  EXPECT_THAT(refusal("format=spaed,packets=4,payload=8"), HasSubstr("counter, spead or vita49"));
  EXPECT_THAT(refusal("format=spead,packets=4,payload=8:8"), HasSubstr("payload=LEN"));
  EXPECT_THAT(refusal("format=spead,from=ethernet,packets=4,payload=8"), HasSubstr("leave it out"));
}

TEST(FrameDescription, ANumberThatComesRoundTooSoonIsRefused) {
  // 4 frames of window and 4 of jump either way are 12 frames of 8: 96 of 256 numbers, at most half of them.
  EXPECT_EQ(described("packets=8,seq=0:8,payload=8:8").sequence.bits, 8U);
  EXPECT_THAT(refusal("packets=16,seq=0:8,payload=8:8"), HasSubstr("a number of 8 bits is too short"));
  EXPECT_THAT(refusal("packets=8,seq=0:8,payload=8:8,step=2"), HasSubstr("too short"));
  EXPECT_EQ(described("packets=16,seq=0:8,payload=8:8,window=2,jump=2").window, 2U);
}

/// 256 numbers are 25 frames of 10 and 6 packets of another, behind which the sender begins again at 0.
TEST(FrameDescription, ANumberThatComesRoundInTheMiddleOfAFrameIsRefused) {
  EXPECT_THAT(refusal("packets=10,seq=0:8,payload=8:8,window=1,jump=1"), HasSubstr("2^8 is no multiple of the 10"));
  EXPECT_THAT(refusal("packets=1000,seq=0:32,payload=8:8"), HasSubstr("in the middle of a frame"));
  EXPECT_THAT(refusal("packets=8,seq=0:32,payload=8:8,step=3"), HasSubstr("the 24 numbers of a frame"));
  EXPECT_THAT(refusal("format=spead,packets=10,payload=8,heap=8,seq=42:48,step=4096"), HasSubstr("the 40960 numbers"));
  // Powers of two fit in whole, and wide numbers do not come round in a run.
  EXPECT_EQ(described("packets=16,seq=0:8,payload=8:8,window=1,jump=1,step=2").step, 2U);
  EXPECT_EQ(described("packets=1000,seq=0:48,payload=8:8").packets, 1000U);
  EXPECT_EQ(described("format=spead,packets=10,payload=8,heap=8").packets_per_heap(), 1U);
  EXPECT_EQ(described("format=vita49,packets=10,payload=1440,step=360").step, 360U);
}

TEST(FrameDescription, PacketsOfAStreamPassOneAssembler) {
  const auto queues = [](const char* streams, std::uint32_t count) {
    return check_queues(described("packets=4,seq=0:32,payload=8:8" + std::string(streams)), count);
  };
  for (const char* streams : {"", ",stream=4:16"}) {
    EXPECT_TRUE(queues(streams, 1).ok());
    const Result<void> several = queues(streams, 2);
    ASSERT_FALSE(several.ok()) << streams;
    EXPECT_EQ(several.error().kind, ErrorKind::usage);
    EXPECT_THAT(several.error().message(), HasSubstr("stream=5-tuple"));
  }
  EXPECT_TRUE(queues(",stream=5-tuple", 256).ok());
}

WARPLINE_PROPERTY(FrameDescription, TheTextParsesToTheSame, ()) {
  const auto pick = [](std::uint32_t low, std::uint32_t high) { return *rc::gen::inRange(low, high); };
  std::string text = "packets=" + std::to_string(pick(1, 2000));
  switch (pick(0, 4)) {
    case 0:
      text += ",seq=" + std::to_string(pick(0, 8)) + ":" + std::to_string(pick(48, 65)) + ":le,payload=16:";
      break;
    case 1:
      text += ",from=ethernet,seq=42:64,payload=58:";
      break;
    case 2:
      text += ",format=vita49,step=17,payload=";
      break;
    default:
      text += ",format=spead,payload=";
  }
  text += std::to_string(pick(1, 2000)) + ",window=" + std::to_string(pick(1, 9));
  if (pick(0, 2) != 0) text += ",jump=" + std::to_string(pick(1, 99)) + ",restart=" + std::to_string(pick(2, 99));
  if (pick(0, 2) != 0) text += ",stream=1:13,streams=" + std::to_string(pick(1, 99));
  const FrameDescription description = described(text);
  RC_ASSERT(described(to_text(description)) == description);
}

}  // namespace
}  // namespace warpline::flow
