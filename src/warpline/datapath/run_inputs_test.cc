// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/run_inputs.h"

#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::datapath {
namespace {

class RunInputsTest : public testing::Test {
 protected:
  /// A port that replays a file of so many packets.
  port::PortSettings replaying(std::size_t packets, const std::string& more = "") {
    const std::string file = folder_.write(std::to_string(packets) + ".pcap",
                                           pcap_bytes(std::vector<std::string>(packets, std::string(60, 'a'))));
    return {.spec = "net_pcap0,rx_pcap=" + file + more};
  }

  ScratchFolder folder_;
};

TEST_F(RunInputsTest, BoundARunByWhatAllFilesHold) {
  const Result<RunInputs> inputs = look_at_inputs(std::vector{replaying(3), replaying(4)});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message();
  EXPECT_EQ(inputs->specs.size(), 2U);
  EXPECT_EQ(inputs->nodes.size(), 2U);
  EXPECT_EQ(inputs->bound(0), 7U);
  EXPECT_EQ(inputs->bound(5), 5U);
  EXPECT_EQ(inputs->bound(8), 7U);
  EXPECT_FALSE(inputs->used_up(7, 6, {}));
  EXPECT_TRUE(inputs->used_up(7, 7, {}));
}

TEST_F(RunInputsTest, BoundARunByTheFilesOfAllQueuesOfAPort) {
  const port::PortSettings first = replaying(3);
  const std::string second = replaying(40).spec.substr(std::string("net_pcap0").size());
  const Result<RunInputs> inputs = look_at_inputs(std::vector{port::PortSettings{.spec = first.spec + second}});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message();
  EXPECT_EQ(inputs->bound(0), 43U);
}

TEST_F(RunInputsTest, OneEndlessPortIsNoBound) {
  for (const port::PortSettings& endless : {port::PortSettings{.spec = "net_null0"}, replaying(4, ",infinite_rx=1")}) {
    const Result<RunInputs> inputs = look_at_inputs(std::vector{replaying(3), endless});
    ASSERT_TRUE(inputs.ok()) << inputs.error().message();
    EXPECT_EQ(inputs->bound(0), 0U);
    EXPECT_EQ(inputs->bound(8), 8U);
    EXPECT_FALSE(inputs->used_up(0, 100, {}));
  }
}

TEST_F(RunInputsTest, RefuseAFileThatIsNotThere) {
  const Result<RunInputs> inputs =
      look_at_inputs(std::vector{port::PortSettings{.spec = "net_pcap0,rx_pcap=/none.pcap"}});
  ASSERT_FALSE(inputs.ok());
  EXPECT_EQ(inputs.error().kind, ErrorKind::usage);
}

TEST(RunInputs, OneMemifPortLendsItsMemory) {
  const auto looked = [](const char* first, const char* second) {
    return look_at_inputs(std::vector{port::PortSettings{.spec = first}, port::PortSettings{.spec = second}});
  };
  const Result<RunInputs> two = looked("net_memif0,zero-copy=yes", "net_memif1,role=client,zero-copy=yes");
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().kind, ErrorKind::usage);
  EXPECT_NE(two.error().message().find("port net_memif1,role=client,zero-copy=yes: another port has zero-copy=yes"),
            std::string::npos);
  EXPECT_TRUE(looked("net_memif0,zero-copy=yes", "net_memif1").ok());
  EXPECT_TRUE(looked("net_memif0,zero-copy=yes", "net_memif1,role=server,zero-copy=yes").ok());
}

}  // namespace
}  // namespace warpline::datapath
