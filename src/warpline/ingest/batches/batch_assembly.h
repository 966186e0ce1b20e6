// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/ingest/batches/gpu_batch.h"

namespace warpline::ingest {

/// What a StreamEngine drives beside a consumer of batches: work on the batches' stream whose outcome has to be looked
/// at, and that may have to be given to the stream again. The engine's thread makes all calls.
class BatchAssembly {
 public:
  enum class State : std::uint8_t {
    going,
    waiting,  ///< What the consumer keeps as long as it likes has to come back first: it is not to be called hung.
    refused,  ///< The consumer does not go on.
    failed,   ///< CUDA refused something.
  };

  virtual ~BatchAssembly() = default;
  /// Puts the work of the next batch on its stream. False when CUDA refuses.
  [[nodiscard]] virtual bool take(const GpuBatch& batch) = 0;
  /// Sees what has been done and goes on with it. Never waits; called again and again while the engine works.
  [[nodiscard]] virtual State poll() = 0;
  /// Returns whether that batch, whose work the stream has passed, has been taken to its end.
  [[nodiscard]] virtual bool took(std::uint64_t sequence) const = 0;
};

}  // namespace warpline::ingest
