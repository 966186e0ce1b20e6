// SPDX-License-Identifier: Apache-2.0
// Two processes with the plugin, and in the place of NCCL what drives all of its interface.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/stand_in_testing.h"
#include "ranks.h"

extern char** environ;

namespace warpline::nccl {
namespace {

using Environment = std::vector<std::string>;

constexpr bool kHasVnic = WARPLINE_HAS_VNIC != 0;

/// Two ranks of a role, as processes of this program.
class TwoRanks {
 public:
  TwoRanks(const std::string& role, int version, std::uint64_t seed, const Environment& more = {},
           const char* plugin = WARPLINE_NCCL_PLUGIN) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      pids_[rank] = start({"/proc/self/exe", "--rank", role, std::to_string(rank), std::to_string(version),
                           std::to_string(seed), plugin},
                          rank, ends[rank], more);
    }
    for (const int end : ends) ::close(end);
  }
  ~TwoRanks() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      (void)::kill(pid, SIGKILL);
      (void)::waitpid(pid, nullptr, 0);
    }
  }
  TwoRanks(const TwoRanks&) = delete;
  TwoRanks& operator=(const TwoRanks&) = delete;

  /// How a rank ended: its exit code, or less the signal's number.
  int end_of(std::size_t rank) {
    int status = 0;
    EXPECT_EQ(::waitpid(pids_[rank], &status, 0), pids_[rank]);
    pids_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  static pid_t start(std::vector<std::string> arguments, std::size_t rank, int end, const Environment& more) {
    // Two lanes, so that there are several sessions, and a piece that is small enough to have many.
    // Of variables that come twice the first counts.
    Environment environment = more;
    environment.push_back("LOCAL_RANK=" + std::to_string(rank));
    for (const char* const one :
         {"NCCL_SOCKET_IFNAME=lo", "WARPLINE_NCCL_LANES=2", "WARPLINE_NCCL_PIECE=65536", "WARPLINE_NCCL_MAX_RECVS=8"})
      environment.emplace_back(one);
    std::vector<char*> argv;
    for (std::string& one : arguments) argv.push_back(one.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (std::string& one : environment) envp.push_back(one.data());
    for (char** one = environ; *one != nullptr; ++one) envp.push_back(*one);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, end, 3);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }

  std::array<pid_t, 2> pids_{};
};

void expect_both_end_well(const std::string& role, int version, std::uint64_t seed, const Environment& more = {}) {
  TwoRanks ranks(role, version, seed, more);
  EXPECT_EQ(ranks.end_of(0), 0);
  EXPECT_EQ(ranks.end_of(1), 0);
}

class EachVersion : public testing::TestWithParam<int> {};

TEST_P(EachVersion, TransfersOfAllSizesAndTagsArriveAsTheyWereSent) {
  expect_both_end_well("exchange", GetParam(), static_cast<std::uint64_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Nccl, EachVersion, testing::Range(NetStandIn::kFirstVersion, NetStandIn::kLastVersion + 1));

TEST(NcclPlugin, HasNoVersionBeforeTheFirst) {
  EXPECT_EQ(NetStandIn::load(WARPLINE_NCCL_PLUGIN, NetStandIn::kFirstVersion - 1), nullptr);
  EXPECT_EQ(NetStandIn::load(WARPLINE_NCCL_PLUGIN, NetStandIn::kLastVersion + 1), nullptr);
}

TEST(NcclPlugin, TransfersGoOneAtATimeIfToldSo) {
  expect_both_end_well("exchange", 12, 31, {"WARPLINE_NCCL_MAX_RECVS=1"});
}

TEST(NcclPlugin, ShortTransfersGoBeforeTheirReceivesArePosted) {
  expect_both_end_well("late", 12, 41, {"WARPLINE_NCCL_MAX_RECVS=1", "WARPLINE_NCCL_EARLY=65536"});
}

TEST(NcclPlugin, NoneDoesIfToldSo) {
  expect_both_end_well("late", 12, 42, {"WARPLINE_NCCL_MAX_RECVS=1", "WARPLINE_NCCL_EARLY=0"});
}

TEST(NcclPlugin, AnEarlyTransferThatIsTooLongIsAnError) {
  expect_both_end_well("long early", 12, 43, {"WARPLINE_NCCL_MAX_RECVS=1"});
}

TEST(NcclPlugin, TransfersGoInEthernetsFramesWithCongestionControl) {
  expect_both_end_well("exchange", 11, 32, {"WARPLINE_NCCL_DATAGRAM=1472", "WARPLINE_NCCL_CC=swift"});
}

TEST(NcclPlugin, TransfersSurviveReceiversWithLittleRoom) {
  expect_both_end_well("exchange", 11, 33, {"WARPLINE_NCCL_BUFFER=65536"});
}

TEST(NcclPlugin, DevicesThatAreOneCarryTransfers) { expect_both_end_well("fuse", 12, 34); }

TEST(NcclPlugin, AProcessOfTwoRanksTalksToItself) { expect_both_end_well("self", 12, 40); }

TEST(NcclPlugin, WhatIsNotThereIsRefused) { expect_both_end_well("limits", 12, 35); }

TEST(NcclPlugin, AReceiveThatIsTooSmallIsTheUsersMistake) { expect_both_end_well("long", 12, 36); }

TEST(NcclPlugin, LiarsAndStrangersAreNotLetIn) { expect_both_end_well("lie", 12, 37, {"WARPLINE_NCCL_TIMEOUT=2s"}); }

TEST(NcclPlugin, APeerThatDiesIsAnError) {
  TwoRanks ranks("die", 12, 38, {"WARPLINE_NCCL_TIMEOUT=2s"});
  EXPECT_EQ(ranks.end_of(0), 0);
  EXPECT_EQ(ranks.end_of(1), -SIGKILL);
}

TEST(NcclPlugin, APeerThatStandsStillIsAnError) {
  TwoRanks ranks("stop", 11, 39, {"WARPLINE_NCCL_TIMEOUT=1s"});
  EXPECT_EQ(ranks.end_of(0), 0);
}

/// Over DPDK ports, whose lanes poll, so one each but where it is about more: a wire of memory between two processes,
/// or two ports of one that are wired to each other.
class NcclOverDpdk : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "DPDK's heap and its drivers are not compiled for ThreadSanitizer";
#endif
#endif
  }

  /// The processes' ends of a wire that nobody else has.
  static Environment memif(Environment more = {}) {
    more.emplace_back("WARPLINE_NCCL_LANES=1");
    const std::string wire = "net_memif0,socket=@warpline-test-" + std::to_string(::getpid()) + ",role=";
    for (const std::string& one : {"PORT_0=" + wire + "server", "PORT_1=" + wire + "client",
                                   std::string("ADDRESS_0=10.0.0.1/24"), std::string("ADDRESS_1=10.0.0.2/24")})
      more.push_back("WARPLINE_NCCL_DPDK_" + one);
    return more;
  }
  static Environment vnics(Environment more = {}) {
    more.emplace_back("WARPLINE_NCCL_LANES=1");
    more.emplace_back("WARPLINE_NCCL_DPDK_PORT=net_vnic0,wire=net_vnic1;net_vnic1,wire=net_vnic0");
    more.emplace_back("WARPLINE_NCCL_DPDK_ADDRESS=10.0.0.1/24;10.0.0.2/24");
    // The plugin has its ports to the end of the process, and only DPDK's memory, which LeakSanitizer does not read,
    // points to what their driver allocated.
    more.emplace_back("LSAN_OPTIONS=detect_leaks=0");
    return more;
  }
  static void expect_well(const std::string& role, std::uint64_t seed, const Environment& environment) {
    TwoRanks ranks(role, 11, seed, environment, WARPLINE_NCCL_DPDK_PLUGIN);
    EXPECT_EQ(ranks.end_of(0), 0);
    EXPECT_EQ(ranks.end_of(1), 0);
  }
};

TEST_F(NcclOverDpdk, TransfersOfAllSizesAndTagsArriveAsTheyWereSent) {
  expect_well("exchange", 51, memif({"WARPLINE_NCCL_LANES=2"}));
}

TEST_F(NcclOverDpdk, TransfersGoInEthernetsFrames) {
  expect_well("exchange", 52, memif({"WARPLINE_NCCL_DPDK_MTU=1500", "WARPLINE_NCCL_MAX_RECVS=1"}));
}

TEST_F(NcclOverDpdk, PortsOfOneProcessCarryTransfers) {
  if (!kHasVnic) GTEST_SKIP() << "built without net_vnic";
  expect_well("wired", 53, vnics());
}

TEST_F(NcclOverDpdk, APeerThatStandsStillIsAnError) {
  TwoRanks ranks("stop", 11, 54, memif({"WARPLINE_NCCL_TIMEOUT=4s"}), WARPLINE_NCCL_DPDK_PLUGIN);
  EXPECT_EQ(ranks.end_of(0), 0);
}

TEST_F(NcclOverDpdk, APeerThatDiesIsNoHang) {
  TwoRanks ranks("die", 11, 55, memif({"WARPLINE_NCCL_TIMEOUT=4s"}), WARPLINE_NCCL_DPDK_PLUGIN);
  // An error; or, as net_memif unmaps the wire on a thread of DPDK's, a fault in who was copying there.
  const int end = ranks.end_of(0);
  EXPECT_TRUE(end == 0 || end == -SIGSEGV || end == -SIGBUS) << end;
  EXPECT_EQ(ranks.end_of(1), -SIGKILL);
}

TEST_F(NcclOverDpdk, WhatIsNotThereIsRefused) {
  expect_well("refused", 56, {});
  expect_well("refused", 57, {"WARPLINE_NCCL_DPDK_PORT=net_nothing0", "WARPLINE_NCCL_DPDK_ADDRESS=10.0.0.1/24"});
  expect_well("refused", 58, {"WARPLINE_NCCL_DPDK_PORT=ffff:1f:1f.7", "WARPLINE_NCCL_DPDK_ADDRESS=10.0.0.1/24"});
  expect_well("refused", 59,
              {"WARPLINE_NCCL_DPDK_PORT=net_null0", "WARPLINE_NCCL_DPDK_ADDRESS=10.0.0.1/24",
               "WARPLINE_NCCL_DPDK_MTU=9000000"});
}

}  // namespace
}  // namespace warpline::nccl

int main(int argc, char** argv) {
  if (argc == 7 && std::string_view(argv[1]) == "--rank") {
    return warpline::nccl::run_rank({.role = argv[2],
                                     .rank = std::atoi(argv[3]),
                                     .peer = 3,
                                     .version = std::atoi(argv[4]),
                                     .seed = std::strtoull(argv[5], nullptr, 10),
                                     .plugin = argv[6]});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
