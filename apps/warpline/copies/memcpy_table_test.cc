// SPDX-License-Identifier: Apache-2.0
#include "copies/memcpy_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "copies/copy_rig.h"

namespace warpline::copies {
namespace {

using testing::HasSubstr;

const std::atomic<bool> kGoOn{false};

/// A machine whose calls cost a microsecond each and whose bytes a nanosecond.
Result<std::vector<double>> simulated(const CopyCase& copies, std::size_t runs) {
  const auto count = static_cast<double>(copies.kind == CopyKind::batch ? 1 : copies.count);
  return std::vector<double>(runs, 1000 * count + static_cast<double>(copies.bytes()));
}

MemcpyTable table_of(const TimeCopies& time, bool with_gpu = true, const std::atomic<bool>& stop = kGoOn) {
  return run_memcpy_table(with_gpu, 3, 1, time, stop);
}

TEST(MemcpyTable, HasTheSameBytesInEveryCaseByCount) {
  std::set<std::size_t> counts;
  for (const CopyCase& copies : cases_by_count(true)) {
    EXPECT_EQ(copies.bytes(), kSameBytes);
    counts.insert(copies.count);
  }
  EXPECT_THAT(counts, testing::ElementsAre(1, 8, 64, 512, 4096, 32'768));
  for (const CopyCase& copies : cases_by_size(true)) EXPECT_EQ(copies.count, 1U);
  EXPECT_EQ(cases_by_size(false).back().size, kLargestCopy);
}

TEST(MemcpyTable, TellsTimeRateAndWhatWasPublished) {
  const MemcpyTable table = table_of(simulated);
  const nlohmann::json json = table.to_json();
  const nlohmann::json& row = json.at("by_count").at(0);
  EXPECT_EQ(row.at("count"), 32'768);
  EXPECT_EQ(row.at("published_ms"), 53.08);
  const nlohmann::json& pageable = row.at("columns").at("pageable, to GPU");
  EXPECT_DOUBLE_EQ(pageable.at("us").at("median").get<double>(), 32'768 + kSameBytes / 1e3);
  EXPECT_DOUBLE_EQ(pageable.at("ns_per_copy").get<double>(), 1064);
  EXPECT_EQ(pageable.at("us").at("samples").size(), 3U);
  const nlohmann::json& largest = json.at("by_size").back().at("columns");
  EXPECT_NEAR(largest.at("batch, from GPU").at("gb_per_s").get<double>(), 1, 1e-3);
  EXPECT_FALSE(largest.contains("four streams, to GPU"));
  EXPECT_THAT(table.to_markdown(), HasSubstr("| 32768 | 64 |"));
  EXPECT_THAT(table.to_markdown(), HasSubstr("5.308e+04 us |"));
  EXPECT_EQ(table.exit_code(), 0);
}

TEST(MemcpyTable, WhatFailsIsNotTimedAgain) {
  int calls = 0;
  const MemcpyTable wrong = table_of([&](const CopyCase& copies, std::size_t runs) -> Result<std::vector<double>> {
    if (copies.kind != CopyKind::pinned || copies.count != 512) return simulated(copies, runs);
    ++calls;
    return Error{ErrorKind::verification, "a copy", "what arrived is not what was sent", ""};
  });
  EXPECT_EQ(calls, 2);  // one for each direction
  EXPECT_EQ(wrong.exit_code(), 4);
  EXPECT_THAT(wrong.to_markdown(), HasSubstr("512 copies of 4096 bytes, pinned, to GPU: a copy"));
  const MemcpyTable without = table_of([](const CopyCase& copies, std::size_t runs) -> Result<std::vector<double>> {
    if (copies.kind == CopyKind::batch) return environment_error("a batch", "the driver is too old");
    return simulated(copies, runs);
  });
  EXPECT_EQ(without.exit_code(), 0);
  EXPECT_THAT(without.to_json().dump(), HasSubstr("the driver is too old"));
}

TEST(MemcpyTable, AStopKeepsWhatWasTimed) {
  std::atomic<bool> stop{false};
  const MemcpyTable table = table_of(
      [&](const CopyCase& copies, std::size_t runs) {
        stop = true;
        return simulated(copies, runs);
      },
      true, stop);
  EXPECT_EQ(table.rounds, 0);
  EXPECT_EQ(table.exit_code(), 0);
  EXPECT_NE(table.to_markdown(), "");
}

TEST(CopyRig, CopiesBetweenHostMemoryAndLooksAtIt) {
  auto rig = CopyRig::create(kSameBytes, false);
  ASSERT_TRUE(rig.ok());
  for (const CopyCase& copies : cases_by_count(false)) {
    const auto nanos = rig->time(copies, 2);
    ASSERT_TRUE(nanos.ok());
    EXPECT_EQ(nanos->size(), 2U);
    EXPECT_GT(nanos->front(), 0);
  }
}

}  // namespace
}  // namespace warpline::copies
