// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "transfers/transfer.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/result.h"

namespace warpline::transfers {

/// `Processing` is what is done with bytes that are received.
enum class Processing : std::uint8_t {
  placed,        ///< they are put in their place in the connection's ring and counted, and their place is given back
  verified,      ///< each is compared with what was sent before its place is given back
  acknowledged,  ///< they are put nowhere
};
constexpr auto names_of(Processing) { return enum_names<Processing>({"placed", "verified", "acknowledged"}); }

/// `ChunkRow` is what a transfer in chunks is made with.
struct ChunkRow {
  EngineKind engine = EngineKind::inline_;
  std::uint16_t mtu = 1500;
  Processing processing = Processing::placed;
  std::uint64_t chunk = 0;                       ///< bytes
  ProcessorKind ack = ProcessorKind::cpu;        ///< who writes acknowledgements; gpu: the engine
  ProcessorKind io = ProcessorKind::cpu;         ///< who takes packets; gpu: the engine, which acknowledges
  EngineKind send_engine = EngineKind::inline_;  ///< what puts payload into frames

  /// Returns the transfer of one round, of `bench.bytes` in all or, if 0, of `bench.seconds`.
  [[nodiscard]] Transfer transfer(const config::BenchConfig& bench) const;
  /// Whether the two differ in their engines at most.
  [[nodiscard]] bool beside(const ChunkRow& other) const {
    return mtu == other.mtu && processing == other.processing && chunk == other.chunk;
  }
};

/// Returns how many pairs of ports there are.
[[nodiscard]] std::uint32_t pipelines_of(const config::BenchConfig& bench);
/// Returns the rows that `bench` asks for: frames, processing, chunks and engines, the last fastest. Another engine
/// that sends has a row beside theirs, in which the receiving core takes segments. Errors: usage, for what stream-chunk
/// does not have.
[[nodiscard]] Result<std::vector<ChunkRow>> plan_chunks(const config::BenchConfig& bench,
                                                        std::span<const EngineKind> engines);

}  // namespace warpline::transfers
