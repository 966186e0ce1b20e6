// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/pcap_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::runtime {
namespace {

using testing::HasSubstr;

void expect_refused(const std::string& path, const std::string& why) {
  const auto facts = check_pcap(path);
  ASSERT_FALSE(facts.ok());
  EXPECT_EQ(facts.error().kind, ErrorKind::usage);
  EXPECT_THAT(facts.error().message(), HasSubstr(why));
  EXPECT_THAT(facts.error().message(), HasSubstr(path));
  EXPECT_FALSE(facts.error().fix.empty());
  EXPECT_EQ(facts.error().message().find('\n'), std::string::npos);
}

TEST(PcapFile, CountsWhatIsThere) {
  ScratchFolder folder;
  const auto facts = check_pcap(folder.write("a.pcap", pcap_bytes({std::string(60, 'a'), std::string(9014, 'b')})));
  ASSERT_TRUE(facts.ok()) << facts.error().message();
  EXPECT_EQ(facts->packets, 2U);
  EXPECT_EQ(facts->bytes, 9074U);
  EXPECT_EQ(facts->longest, 9014U);
}

TEST(PcapFile, ReadsWhatIsThere) {
  ScratchFolder folder;
  const auto packets = read_pcap(folder.write("a.pcap", pcap_bytes({std::string(60, 'a'), std::string(9014, 'b')})));
  ASSERT_TRUE(packets.ok()) << packets.error().message();
  EXPECT_EQ(packets->offsets, (std::vector<std::int64_t>{0, 60, 9074}));
  EXPECT_EQ(packets->lengths, (std::vector<std::int64_t>{60, 9014}));
  EXPECT_EQ(packets->times_ns.size(), 2U);
  EXPECT_EQ(std::string(packets->bytes.begin(), packets->bytes.end()), std::string(60, 'a') + std::string(9014, 'b'));
  EXPECT_FALSE(read_pcap("/nonexistent/a.pcap").ok());
}

TEST(PcapFile, RefusesWhatIsMissing) { expect_refused("/nonexistent/a.pcap", "No such file"); }

TEST(PcapFile, RefusesAFolder) {
  const ScratchFolder folder;
  expect_refused(folder.path(), "not a regular file");
}

TEST(PcapFile, RefusesAnEmptyFile) {
  ScratchFolder folder;
  expect_refused(folder.write("a.pcap", ""), "the file is empty");
}

TEST(PcapFile, RefusesACaptureOfNothing) {
  ScratchFolder folder;
  expect_refused(folder.write("a.pcap", pcap_bytes({})), "it holds no packets");
}

TEST(PcapFile, RefusesAnotherLinkType) {
  ScratchFolder folder;
  expect_refused(folder.write("a.pcap", pcap_bytes({"x"}, 113)), "LINUX_SLL");
  expect_refused(folder.write("b.pcap", pcap_bytes({"x"}, 101)), "RAW");
}

TEST(PcapFile, RefusesWhatIsNoCapture) {
  ScratchFolder folder;
  expect_refused(folder.write("a.pcap", std::string(200, 'x')), "unknown file format");
}

TEST(PcapFile, RefusesEveryTruncation) {
  ScratchFolder folder;
  const std::string whole = pcap_bytes({std::string(60, 'a'), std::string(60, 'b')});
  const std::size_t ends[] = {24, 24 + 16 + 60, whole.size()};
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const bool at_a_record = std::find(std::begin(ends), std::end(ends), length) != std::end(ends);
    const auto facts = check_pcap(folder.write("a.pcap", whole.substr(0, length)));
    EXPECT_EQ(facts.ok(), at_a_record && length > 24) << length;
    if (!facts.ok()) {
      EXPECT_EQ(facts.error().kind, ErrorKind::usage);
    }
  }
  expect_refused(folder.write("a.pcap", whole.substr(0, whole.size() - 1)), "broken after 1 packets");
}

}  // namespace
}  // namespace warpline::runtime
