// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/kept_eal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace warpline::runtime {
namespace {

LcorePlan plan_of(std::size_t workers) {
  const std::vector<WorkerRequest> requests(workers, WorkerRequest{.name = "rx", .queues = ""});
  return *plan_lcores(machine::Topology::made_up(1, 2, 1), requests, {.share_cores = true});
}

KeptEal first_run(const std::vector<std::string>& ports = {"net_null0"}) {
  return *KeptEal::for_first_run({}, plan_of(1), ports, Bytes{100 * kMebibyte}, {0, 1});
}

TEST(KeptEal, HasMoreThanItsFirstRunNeeds) {
  const KeptEal kept = first_run();
  EXPECT_EQ(kept.lcores(), "0@(0-1),(1-8)@(0-1)");
  EXPECT_TRUE(kept.check({}, plan_of(8), {"net_tap0", "net_pcap1,rx_pcap=a"}, Bytes{1000 * kMebibyte}).ok());
}

TEST(KeptEal, SaysWhatALaterRunNeedsAndItLacks) {
  const KeptEal kept = first_run({"net_null0", "0000:01:00.0"});
  const auto refusal = [&](const RuntimeSettings& settings, std::size_t workers, const std::string& port,
                           std::uint64_t mebibytes) {
    const Result<void> checked = kept.check(settings, plan_of(workers), {port}, Bytes{mebibytes * kMebibyte});
    return checked.ok() ? "" : checked.error().message();
  };
  EXPECT_EQ(refusal({}, 1, "0000:01:00.0", 1), "");
  EXPECT_THAT(refusal({}, 9, "net_null0", 1), testing::HasSubstr("lcores for 8"));
  EXPECT_THAT(refusal({}, 1, "0000:02:00.0", 1), testing::HasSubstr("port 0000:02:00.0: DPDK was started without it"));
  EXPECT_THAT(refusal({}, 1, "net_null0", 4096), testing::HasSubstr("4096 MiB"));
  EXPECT_THAT(refusal({.eal = "--log-level=debug"}, 1, "net_null0", 1), testing::HasSubstr("other EAL arguments"));
  EXPECT_THAT(refusal({.log_level = LogLevel::debug}, 1, "net_null0", 1), testing::HasSubstr("log level error"));
  EXPECT_THAT(refusal({.hugepages = false}, 1, "net_null0", 1), testing::HasSubstr("hugepages"));
}

TEST(KeptEal, WithHugepagesIsAsLargeAsTheMachine) {
  KeptEal kept = first_run();
  kept.hugepages = true;
  EXPECT_TRUE(kept.check({}, plan_of(1), {}, Bytes{100'000 * kMebibyte}).ok());
}

TEST(KeptEal, IsNotThatOfAForkedProcess) {
  KeptEal kept = first_run();
  kept.process = getpid() + 1;
  const Result<void> checked = kept.check({}, plan_of(1), {}, {});
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, ErrorKind::environment);
}

}  // namespace
}  // namespace warpline::runtime
