// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "warpline/ingest/batches/gpu_batch.h"

/// Counts packets by the bits of their length, with a kernel of its own for each batch.
class BatchSizes final : public warpline::ingest::GpuBatchConsumer {
 public:
  static constexpr unsigned kSizes = 16;

  /// On GPU 0, which there is. Without memory for the counts the first batch is refused.
  BatchSizes();
  BatchSizes(const BatchSizes&) = delete;
  BatchSizes& operator=(const BatchSizes&) = delete;
  ~BatchSizes() override;

  bool consume(const warpline::ingest::GpuBatch& batch) override;
  /// Waits for the kernels and returns the counts; nothing if one failed.
  [[nodiscard]] std::optional<std::array<unsigned long long, kSizes>> counts() const;

 private:
  unsigned long long* counts_ = nullptr;  ///< in GPU memory
};
