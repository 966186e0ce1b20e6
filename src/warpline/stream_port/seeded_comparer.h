// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "warpline/base/result.h"
#include "warpline/stream/gpu/seeded_compare.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream_port {

/// Compares bytes of streams with those of a SeededPayload where they are: a batch of pieces at a time, beside the
/// calling thread. One thread makes all calls.
class SeededComparer {
 public:
  static constexpr std::uint32_t kMostPieces = 256;  ///< of a batch

  virtual ~SeededComparer() = default;
  /// Begins to compare up to kMostPieces pieces, which stay as they are until idle(). The batch before it has ended.
  virtual void submit(std::span<const stream::SeededPiece> pieces) = 0;
  /// Returns true once the last batch has ended. Never waits.
  [[nodiscard]] virtual bool idle() const = 0;
  /// Returns how many bytes were wrong in all batches that have ended.
  [[nodiscard]] virtual std::uint64_t wrong() const = 0;
  /// Returns why no batch ends any more, if so.
  [[nodiscard]] virtual std::optional<Error> failure() const = 0;
};

/// Makes one that has a GPU compare what lies in memory that it reaches. Before kernels that stay run there. Errors:
/// environment, if there is no such GPU or no memory.
[[nodiscard]] Result<std::unique_ptr<SeededComparer>> make_gpu_comparer(int gpu, const stream::SeededPayload& payload);

}  // namespace warpline::stream_port
