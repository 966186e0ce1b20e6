// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/ingest/consumers/pattern_check.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {

/// `PatternMemory` owns what a PatternCheck compares with, in host memory or in that of one GPU.
class PatternMemory {
 public:
  struct Options {
    std::uint16_t streams = 1;     ///< of the generator
    std::uint64_t started = 0;     ///< ticks; see PatternSource
    bool finds_duplicates = true;  ///< false: frames come again and again, as on a static wire
    std::optional<int> gpu = {};   ///< CUDA ordinal; unset: host memory
  };
  /// Copies the plan's tables. It is an environment error if there is no memory, or no such GPU.
  [[nodiscard]] static Result<std::unique_ptr<PatternMemory>> create(const traffic::TrafficPlan& plan,
                                                                     const Options& options);

  /// Returns the source where workers read it.
  [[nodiscard]] const PatternSource* source() const { return source_; }
  /// Returns the bytes of GPU memory that it takes.
  [[nodiscard]] Bytes gpu_bytes() const { return {device_ ? device_->size() : 0}; }

 private:
  PatternMemory() = default;

  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };

  std::unique_ptr<std::byte[], FreeAligned> host_;
  std::optional<gpu::DeviceBuffer> device_;
  const PatternSource* source_ = nullptr;
};

}  // namespace warpline::ingest
