// SPDX-License-Identifier: Apache-2.0
// What follows from the settings of an ingest run.
#include "warpline/ingest/ingest_settings.h"

#include <gtest/gtest.h>

#include <string>

namespace warpline::ingest {
namespace {

using datapath::DatapathSettings;
using memory::MemoryKind;

TEST(Resolve, ChoosesThePoolsMemoryByEngineAndPath) {
  struct Row {
    EngineKind engine;
    IngestPath path;
    MemoryKind pool;
    bool frees_at_once;
  };
  const Row rows[] = {
      {EngineKind::inline_, IngestPath::copy, MemoryKind::host, true},
      {EngineKind::thread, IngestPath::zerocopy, MemoryKind::host, false},
      {EngineKind::thread, IngestPath::copy_naive, MemoryKind::host, true},
      {EngineKind::launch, IngestPath::copy, MemoryKind::host, true},
      {EngineKind::launch, IngestPath::zerocopy, MemoryKind::pinned, false},
      {EngineKind::persistent, IngestPath::device, MemoryKind::device, false},
      {EngineKind::persistent, IngestPath::copy_naive, MemoryKind::host, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(name(row.engine)) + ", " + std::string(name(row.path)));
    for (const bool by_ingest : {false, true}) {
      IngestSettings ingest{.path = row.path};
      DatapathSettings settings;
      (by_ingest ? ingest.engine.emplace() : settings.forward.engine) = row.engine;
      ASSERT_TRUE(resolve(ingest, settings).ok());
      EXPECT_EQ(settings.forward.engine, row.engine);
      EXPECT_EQ(settings.pool.memory, row.pool);
      EXPECT_EQ(settings.forward.frees_at_once, row.frees_at_once);
      EXPECT_EQ(settings.forward.model, datapath::ModelKind::run_to_completion);
      EXPECT_EQ(settings.forward.workload, WorkloadKind::user);
      EXPECT_EQ(settings.forward.recycle, memory::RecycleWay::off);
      EXPECT_FALSE(settings.forward.adaptive_burst);
    }
  }
}

TEST(Resolve, KeepsBuffersAndRecyclesWherePacketsAreTransmitted) {
  DatapathSettings settings;
  settings.forward.recycle = memory::RecycleWay::automatic;
  ASSERT_TRUE(resolve({.transmit = true}, settings).ok());
  EXPECT_FALSE(settings.forward.frees_at_once);
  EXPECT_EQ(settings.forward.recycle, memory::RecycleWay::automatic);
}

/// Pools and bursts are sized for batches that adapt, whoever starts the run.
TEST(Resolve, BoundsAnAdaptiveBatchByTheReceiveRing) {
  DatapathSettings settings;
  settings.forward.burst = 512;
  settings.loopback_port.rx_ring = 256;
  ASSERT_TRUE(resolve({.adaptive = true}, settings).ok());
  EXPECT_TRUE(settings.forward.adaptive_burst);
  EXPECT_EQ(settings.forward.burst, 256);
  settings.forward.burst = 512;
  settings.ports.emplace_back().rx_ring = 128;
  ASSERT_TRUE(resolve({.adaptive = true}, settings).ok());
  EXPECT_EQ(settings.forward.burst, 128);
  settings.forward.burst = 512;
  ASSERT_TRUE(resolve({}, settings).ok());
  EXPECT_EQ(settings.forward.burst, 512);
}

TEST(Resolve, RefusesWhatExcludesEachOther) {
  struct Row {
    IngestSettings ingest;
    const char* what;
  };
  const Row rows[] = {
      {{.path = IngestPath::device, .engine = EngineKind::inline_}, "the path device"},
      {{.engine = EngineKind::thread, .memory = MemoryKind::pinned}, "the engine thread with pinned memory"},
      {{.engine = EngineKind::inline_, .memory = MemoryKind::device}, "the engine inline with device memory"},
      {{.engine = EngineKind::persistent, .memory = MemoryKind::host}, "the engine persistent with host memory"},
  };
  for (const Row& row : rows) {
    DatapathSettings settings;
    const Result<void> refused = resolve(row.ingest, settings);
    ASSERT_FALSE(refused.ok()) << row.what;
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_EQ(refused.error().what, row.what);
  }
}

}  // namespace
}  // namespace warpline::ingest
