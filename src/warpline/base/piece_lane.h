// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/result.h"

namespace warpline {

/// Bytes in, bytes out. Either may be where the CPU does not reach.
struct Piece {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t length = 0;  ///< bytes, at least one
};

/// Batches of pieces that something beside the CPU works on, such as a GPU: it copies them, or does whatever else the
/// lane is for. They land in the order of their submission. One thread; no call waits.
class PieceLane {
 public:
  static constexpr std::size_t kMostPieces = 256;  ///< of a batch

  PieceLane() = default;
  PieceLane(const PieceLane&) = delete;
  PieceLane& operator=(const PieceLane&) = delete;
  virtual ~PieceLane() = default;

  /// Begins; what was submitted before waits until then. When all else that is to run on that GPU is set up.
  [[nodiscard]] virtual Result<void> start() { return {}; }
  /// One to kMostPieces, in any order. False: no room now.
  [[nodiscard]] virtual bool submit(std::span<const Piece> batch) = 0;
  /// How many batches have landed: their bytes are there, for the CPU too.
  [[nodiscard]] virtual std::uint64_t landed() = 0;
  /// Why nothing more lands, if so.
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
  /// Ends it, whatever is under way. All lanes of a GPU end before the first of them goes: memory of one cannot be
  /// given back while others run.
  virtual void stop() {}
};

}  // namespace warpline
