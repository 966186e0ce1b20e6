// SPDX-License-Identifier: Apache-2.0
#include "vnic/sources/source.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "vnic/args/devargs.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::vnic {
namespace {

struct Opened {
  std::unique_ptr<Source> source;
  int status = 0;
  std::string problem;
};

Opened open(const Devargs& args) {
  Opened opened;
  opened.source = Source::open(args, opened.status, opened.problem);
  EXPECT_EQ(opened.source == nullptr, opened.status != 0);
  EXPECT_EQ(opened.problem.empty(), opened.status == 0);
  return opened;
}

std::vector<std::uint8_t> bytes_of(const Source::Frame& frame) { return {frame.bytes, frame.bytes + frame.length}; }

Devargs made(std::uint32_t size, std::uint32_t flows) {
  Devargs args;
  args.wire = WireKind::source;
  args.size = size;
  args.flows = flows;
  return args;
}

class MadeFrames : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(MadeFrames, AreValidUdpOfEachFlowInTurn) {
  constexpr std::uint32_t kFlows = 70000;
  const Opened opened = open(made(GetParam(), kFlows));
  ASSERT_NE(opened.source, nullptr);
  std::set<std::pair<std::uint32_t, std::uint16_t>> flows;
  Source::Frame frame;
  for (std::uint32_t i = 0; i < kFlows; ++i) {
    ASSERT_TRUE(opened.source->next(5, frame));
    EXPECT_EQ(frame.nanos, 5U);
    ASSERT_EQ(frame.length, GetParam());
    Segment segment{frame.bytes, frame.length, 0, Verdict::forward};
    const FrameRef whole{&segment, 1, frame.length};
    const packet::ParsedFrame parsed = packet::parse(whole);
    ASSERT_EQ(parsed.l4, packet::L4Kind::udp);
    ASSERT_EQ(packet::verify_checksums(whole, parsed), Verdict::forward) << "flow " << i;
    ASSERT_NE(packet::load_be16(frame.bytes + parsed.l4_offset + packet::UdpView::kChecksum), 0);
    flows.emplace(packet::load_be32(frame.bytes + parsed.l3_offset + packet::Ipv4View::kSource),
                  packet::load_be16(frame.bytes + parsed.l4_offset + packet::UdpView::kSourcePort));
  }
  EXPECT_EQ(flows.size(), kFlows);
}

INSTANTIATE_TEST_SUITE_P(Sizes, MadeFrames, ::testing::Values(60, 61, 64, 1514));

TEST(Source, BeginsAgainWithTheFirstFlow) {
  const Opened opened = open(made(64, 3));
  Source::Frame frame;
  std::vector<std::vector<std::uint8_t>> round;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(opened.source->next(0, frame));
    round.push_back(bytes_of(frame));
    std::fill_n(frame.bytes, frame.length, 0);  // what faults do to a frame stays its own
  }
  EXPECT_EQ(round[0], round[3]);
  EXPECT_EQ(round[2], round[5]);
  EXPECT_NE(round[0], round[1]);
}

TEST(Source, AddressesFramesToThePort) {
  const Opened opened = open(made(64, 1));
  Source::Frame frame;
  ASSERT_TRUE(opened.source->next(0, frame));
  EXPECT_EQ(frame.bytes[0], 0xff);
  const MacAddress mac{{2, 0, 0, 0, 0, 9}};
  opened.source->address_to(mac);
  ASSERT_TRUE(opened.source->next(0, frame));
  EXPECT_EQ(packet::load_address<MacAddress>(frame.bytes), mac);
}

TEST(Source, KeepsItsRate) {
  Devargs args = made(64, 1);
  args.packets_per_s = 1e6;  // one a microsecond
  const Opened opened = open(args);
  opened.source->start(5000);
  Source::Frame frame;
  ASSERT_TRUE(opened.source->next(5000, frame));
  EXPECT_EQ(frame.nanos, 5000U);
  EXPECT_FALSE(opened.source->next(5999, frame));
  ASSERT_TRUE(opened.source->next(7100, frame));
  EXPECT_EQ(frame.nanos, 6000U);
  ASSERT_TRUE(opened.source->next(7100, frame));
  EXPECT_EQ(frame.nanos, 7000U);
  EXPECT_FALSE(opened.source->next(7100, frame));
}

TEST(Source, SkipsWhatIsTooLate) {
  Devargs args = made(64, 1);
  args.packets_per_s = 1e6;
  const Opened opened = open(args);
  opened.source->start(0);
  Source::Frame frame;
  std::uint64_t frames = 0;
  while (opened.source->next(1'000'000'000, frame)) {
    if (frames++ == 0) {
      EXPECT_EQ(frame.nanos, 1'000'001'000 - Source::kMaxBacklog * 1000);
    }
  }
  EXPECT_EQ(frames, Source::kMaxBacklog);
  EXPECT_TRUE(opened.source->next(1'000'001'000, frame));
}

TEST(Source, RefusesWhatCannotBe) {
  for (const std::uint32_t size : {0U, 59U, 9023U, 70000U}) EXPECT_EQ(open(made(size, 1)).status, -EINVAL);
  for (const std::uint32_t flows : {0U, Devargs::kMaxFlows + 1}) EXPECT_EQ(open(made(64, flows)).status, -EINVAL);
  Devargs args = made(64, 1);
  args.packets_per_s = -1;
  EXPECT_EQ(open(args).status, -EINVAL);
}

// ---- replay

class Replay : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "vnic_source_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string number(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
  static std::string head(std::uint32_t link_type) {
    return number(0xa1b2c3d4) + number(2 | 4U << 16) + number(0) + number(0) + number(65535) + number(link_type);
  }
  static std::string record(const std::string& bytes) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    return number(0) + number(0) + number(length) + number(length) + bytes;
  }
  Opened open_file(const std::string& content) {
    const std::filesystem::path path = folder_ / "capture.pcap";
    std::ofstream(path, std::ios::binary) << content;
    Devargs args;
    args.pcap = path;
    return open(args);
  }

  std::filesystem::path folder_;
};

constexpr std::uint32_t kEthernet = 1;
constexpr std::uint32_t kRawIp = 101;

TEST_F(Replay, GivesAllFramesOverAndOver) {
  const std::string first(60, 'a');
  const std::string second(1500, 'b');
  const Opened opened = open_file(head(kEthernet) + record(first) + record(second));
  ASSERT_NE(opened.source, nullptr) << opened.problem;
  opened.source->address_to({{1, 2, 3, 4, 5, 6}});  // of made frames only
  Source::Frame frame;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(opened.source->next(0, frame));
    EXPECT_EQ(std::string(frame.bytes, frame.bytes + frame.length), first);
    std::fill_n(frame.bytes, frame.length, 0);
    ASSERT_TRUE(opened.source->next(0, frame));
    EXPECT_EQ(std::string(frame.bytes, frame.bytes + frame.length), second);
  }
}

TEST_F(Replay, NamesWhatIsWrongWithAFile) {
  Devargs args;
  args.pcap = folder_ / "absent.pcap";
  EXPECT_EQ(open(args).status, -ENOENT);
  args.pcap = folder_;
  EXPECT_EQ(open(args).status, -EINVAL);
  EXPECT_EQ(open_file("").status, -EINVAL);
  EXPECT_EQ(open_file("no capture at all, whatever its name").status, -EINVAL);
  EXPECT_EQ(open_file(head(kEthernet)).status, -EINVAL);
  EXPECT_EQ(open_file(head(kRawIp) + record(std::string(60, 'a'))).status, -EINVAL);
  const std::string whole = head(kEthernet) + record(std::string(60, 'a'));
  EXPECT_EQ(open_file(whole + record(std::string(60, 'b')).substr(0, 40)).status, -EINVAL);
  EXPECT_EQ(open_file(whole).status, 0);
}

}  // namespace
}  // namespace warpline::vnic
