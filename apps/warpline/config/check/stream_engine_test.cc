// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "config/check/check_stream.h"
#include "config/load_testing.h"

namespace warpline::config {
namespace {

std::string engine_outcome(const std::string& options) {
  return outcome(load_line("stream receive --port net_null0 --address 10.0.0.1/24 --listen 5001 " + options));
}

TEST(StreamEngine, GoesWithTheMemoryThatItReaches) {
  for (const char* const options : {"", "--engine inline", "--engine thread -m host", "--engine persistent",
                                    "--engine persistent -m device -g 1", "--engine launch -m pinned"}) {
    EXPECT_EQ(engine_outcome(options), "ok") << options;
  }
  EXPECT_EQ(
      engine_outcome("--engine graph"),
      "cannot use --engine graph: each burst of a queue is a launch of its own; use --engine launch or persistent");
  EXPECT_EQ(engine_outcome("--engine thread -m device"),
            "cannot combine --engine thread with --memory device: the CPU writes the rings, in ordinary host memory; "
            "use -m host, or an engine on a GPU");
  EXPECT_EQ(engine_outcome("--engine persistent -m host"),
            "cannot combine --engine persistent with --memory host: a GPU cannot write ordinary host memory; use -m "
            "device or pinned");
  EXPECT_EQ(engine_outcome("--engine thread -g 0"),
            "cannot use --gpu: the engine does not run on a GPU; leave it out, or add --engine persistent");
}

TEST(StreamEngine, AcknowledgesIfItIsNotTheQueueItself) {
  for (const char* const options : {"--ack cpu", "--engine thread --ack gpu", "--engine launch --ack gpu"}) {
    EXPECT_EQ(engine_outcome(options), "ok") << options;
  }
  EXPECT_EQ(engine_outcome("--ack gpu"),
            "cannot use --ack gpu: the queue's own thread is the engine; use --ack cpu, or add --engine persistent, "
            "launch or thread");
}

TEST(StreamEngine, TakesPacketsIfItRunsAllTheTime) {
  for (const char* const options :
       {"--io cpu", "--io gpu --engine thread", "--io gpu --engine persistent -m pinned",
        "--io gpu --engine thread --ack cpu", "--io gpu --engine thread --processing off"}) {
    EXPECT_EQ(engine_outcome(options), "ok") << options;
  }
  EXPECT_EQ(engine_outcome("--io gpu --engine launch"),
            "cannot combine --io gpu with --engine launch: packets are taken by what runs all the time beside the CPU "
            "that receives; add --engine persistent, or --engine thread to try it without a GPU");
  EXPECT_EQ(engine_outcome("--io gpu --engine thread --vlan 7"),
            "cannot combine --io gpu with --vlan 7: the CPU takes tags off and looks at no packet; leave one out");
  const auto acknowledges = [](const char* options) {
    return load_line(
               std::string("stream receive --port net_null0 --address 10.0.0.1/24 --listen 5001 --engine thread ") +
               options)
        ->config.stream.ack;
  };
  EXPECT_EQ(acknowledges(""), ProcessorKind::cpu);
  EXPECT_EQ(acknowledges("--io gpu"), ProcessorKind::gpu);
  EXPECT_EQ(acknowledges("--io gpu --ack cpu"), ProcessorKind::cpu);
}

TEST(StreamEngine, IsWatchedIfItIsNotTheQueueItself) {
  EXPECT_EQ(engine_outcome("--engine thread --watchdog 200"), "ok");
  EXPECT_EQ(engine_outcome("--engine launch --watchdog 2s"), "ok");
  EXPECT_EQ(engine_outcome("--watchdog 200"),
            "cannot use --watchdog: the queue's own thread is the engine; leave it out, or add --engine persistent");
}

TEST(StreamProcessing, LeavesNothingToDoWithBytes) {
  for (const char* const options :
       {"--processing on --verify", "--processing off", "--processing off --engine thread --ack gpu",
        "--processing off --engine persistent -g 1", "--processing off --engine launch --ring 2Mi"}) {
    EXPECT_EQ(engine_outcome(options), "ok") << options;
  }
  EXPECT_EQ(engine_outcome("--processing off --verify"),
            "cannot combine --processing off with --verify: bytes are acknowledged and kept nowhere; leave one out");
  EXPECT_EQ(engine_outcome("--processing off --output out"),
            "cannot combine --processing off with --output: bytes are acknowledged and kept nowhere; leave one out");
  EXPECT_EQ(engine_outcome("--processing off --populate"),
            "cannot use --populate: without processing nothing is written to the rings; leave it out");
  EXPECT_EQ(engine_outcome("--processing off --engine launch -m pinned"),
            "cannot use --memory: without processing nothing is written to the rings; leave it out");
  EXPECT_EQ(outcome(load_line("stream proxy --port net_null0 --address 10.0.0.1/24 --listen 5001 --connect 10.0.0.2:1 "
                              "--processing off")),
            "cannot use --processing: it is for stream receive; leave it out");
}

TEST(StreamChunk, HasPlaceInItsRing) {
  for (const char* const options : {"--chunk 0", "--chunk 2Mi", "--chunk 4Ki --ring 64Ki", "--chunk 3Mi --ring 8Mi"}) {
    EXPECT_EQ(engine_outcome(options), "ok") << options;
  }
  EXPECT_EQ(engine_outcome("--chunk 4095"), "cannot use --chunk 4095: a segment may bring more; use 4096 or more");
  EXPECT_EQ(engine_outcome("--chunk 64Ki --ring 64Ki"),
            "cannot combine --chunk 65536 with --ring 65536: what comes behind a chunk needs place, too; use a ring of "
            "twice the chunk or more");
}

TEST(StreamEngine, FillsSegmentsThatAreSent) {
  const auto sending = [](const std::string& options) {
    return outcome(load_line("stream send --port net_null0 --address 10.0.0.1/24 --connect 10.0.0.2:5001 " + options));
  };
  for (const char* const options : {"", "--engine thread --watchdog 200", "--engine launch",
                                    "--engine launch -m pinned", "--engine launch -m device -g 1"}) {
    EXPECT_EQ(sending(options), "ok") << options;
  }
  EXPECT_EQ(sending("--engine persistent"),
            "cannot use --engine persistent: each burst of frames that are filled is a launch of its own; use --engine "
            "launch");
  EXPECT_EQ(sending("-m device"),
            "cannot combine --engine inline with --memory device: the CPU writes the rings, in ordinary host memory; "
            "use -m host, or an engine on a GPU");
  EXPECT_EQ(sending("--ack gpu"), "cannot use --ack: it is for stream receive; leave it out");
}

TEST(StreamEngine, IsNotForTheProxy) {
  EXPECT_EQ(outcome(load_line("stream proxy --port net_null0 --address 10.0.0.1/24 --listen 5001 --connect 10.0.0.2:1 "
                              "--engine thread")),
            "cannot use --engine: it is for stream send and stream receive; leave it out");
}

TEST(StreamEngine, SaysWhereRingsAre) {
  const auto rings = [](const char* options) {
    return load_line(std::string("stream receive --port net_null0 --address 10.0.0.1/24 --listen 5001 ") + options)
        ->config.stream.rings();
  };
  EXPECT_EQ(rings(""), memory::MemoryKind::host);
  EXPECT_EQ(rings("--engine launch"), memory::MemoryKind::device);
  EXPECT_EQ(rings("--engine launch -m pinned"), memory::MemoryKind::pinned);
}

}  // namespace
}  // namespace warpline::config
