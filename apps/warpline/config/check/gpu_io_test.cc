// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "config/load_testing.h"

namespace warpline::config {
namespace {

std::string io_outcome(const std::string& options) {
  return outcome(load_line("forward --loopback --io gpu " + options));
}

TEST(GpuIo, GoesWithEnginesThatRunBesideTheProxy) {
  for (const char* const options :
       {"--engine thread", "--engine persistent", "--engine persistent -m device --pipelines 4",
        "--engine thread --model run-to-completion", "--engine persistent --burst 512 --ring-slots 2"}) {
    EXPECT_EQ(io_outcome(options), "ok") << options;
  }
  EXPECT_EQ(io_outcome(""),
            "cannot combine --io gpu with --engine inline: packets are taken by what runs all the time beside the CPU "
            "that receives; add --engine persistent, or --engine thread to try it without a GPU");
  EXPECT_EQ(io_outcome("--engine graph"),
            "cannot combine --io gpu with --engine graph: packets are taken by what runs all the time beside the CPU "
            "that receives; add --engine persistent, or --engine thread to try it without a GPU");
  EXPECT_EQ(io_outcome("--engine persistent --ctas 2"),
            "cannot combine --io gpu with --ctas 2: one thread or CTA takes what is in a pair of queues; leave it out, "
            "and use more --pipelines");
}

TEST(GpuIo, HasNoBatchesToWaitFor) {
  EXPECT_EQ(io_outcome("--engine thread --burst adaptive"),
            "cannot combine --io gpu with --burst adaptive: the CPU makes no batches: the engine takes what has come; "
            "use a number, which it takes at most");
  EXPECT_EQ(io_outcome("--engine thread --deadline 5us"),
            "cannot use --deadline: with --io gpu no packet waits for a batch; leave it out");
}

TEST(GpuIo, LeavesNothingForTheCpuToDo) {
  EXPECT_EQ(io_outcome("--engine persistent --on-gpu-failure failover"),
            "cannot combine --io gpu with --on-gpu-failure failover: no host thread knows how far a GPU came that took "
            "packets by itself; use stop, or leave --io out");
  EXPECT_EQ(outcome(load_line("forward --port net_null0 --address 10.0.0.1/24 --io gpu --engine thread")),
            "cannot combine --io gpu with --address: the CPU answers for addresses and looks at no packet; leave one "
            "out");
}

}  // namespace
}  // namespace warpline::config
