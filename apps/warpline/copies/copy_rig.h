// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "copies/copy_case.h"
#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::copies {

/// CopyRig is memory on both sides, and times copies between them. One thread, whose GPU it uses.
class CopyRig {
 public:
  /// Makes a rig for copies of `most` bytes in all; without a GPU only between host memory.
  [[nodiscard]] static Result<CopyRig> create(std::size_t most, bool with_gpu);

  /// Makes all copies of a case `runs` times over and returns how long each run took, in nanoseconds, from the first
  /// call to the last byte's arrival. What has arrived is then compared with what was sent, which is other bytes every
  /// time: a verification error if they differ.
  [[nodiscard]] Result<std::vector<double>> time(const CopyCase& copies, std::size_t runs);

 private:
  /// What only a rig with a GPU has.
  struct OnGpu {
    gpu::PinnedBuffer pinned;
    gpu::PinnedBuffer look;  ///< through which GPU memory is written and looked at
    gpu::DeviceBuffer device;
    std::vector<gpu::CudaStream> streams;
  };
  /// Where a case copies from and to.
  struct Ends {
    std::byte* from = nullptr;
    std::byte* to = nullptr;
  };
  CopyRig() = default;

  [[nodiscard]] Ends ends_of(const CopyCase& copies);
  [[nodiscard]] Result<void> fill(const CopyCase& copies, const Ends& ends);
  [[nodiscard]] Result<bool> same(const CopyCase& copies, const Ends& ends);

  std::vector<std::byte> sent_;  ///< what was put where copies come from
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  std::optional<OnGpu> gpu_;
  std::uint64_t seed_ = 0;
};

}  // namespace warpline::copies
