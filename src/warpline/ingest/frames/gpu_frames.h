// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/base/verdict.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/frame_description.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/ingest/consumers/consumer.h"
#include "warpline/ingest/frames/frame_sink.h"

namespace warpline::ingest {

/// What the CTAs that assemble one path's frames share beside the assembler, in GPU memory.
struct GpuFrameWords {
  std::uint64_t turn;      ///< sequence of the burst to be taken next
  std::uint64_t consumed;  ///< frames consumed
  std::uint64_t packets;   ///< of these
  std::uint64_t bytes;
  std::uint64_t sum;
  std::uint64_t longest_open;  ///< nanoseconds
};

/// The work of an engine on a GPU that puts packets into frames in GPU memory and consumes each frame that is handed
/// over, burst after burst in the order of their sequences: a CTA waits until the burst before its own has been taken.
/// A persistent kernel has one CTA for it, since one that is told to stop would leave the next one waiting. frames are
/// as HostFrames makes them, to the last byte and count.
struct AssembleOnGpu {
  static constexpr bool kStateless = true;

  flow::AssemblerView view;  ///< all of it in GPU memory
  GpuFrameWords* words;

  /// A host has no part in this: it cannot reach the frames.
  WARPLINE_HD Verdict operator()(FrameRef /*frame*/) const { return Verdict::engine_stopped; }
  void merge(const AssembleOnGpu& /*other*/) {}
};

/// Frames in the memory of a GPU. Needs device code.
class GpuFrames final : public FrameSink {
 public:
  struct Place {
    int gpu = 0;                       ///< CUDA ordinal
    std::uint32_t batch = 0;           ///< descriptors of a burst at most
    std::uint64_t first_sequence = 1;  ///< of the burst ring
  };

  /// Takes `memory` bytes of that GPU at most, and all that it will ever have. A usage error if that is too little for
  /// the description.
  [[nodiscard]] static Result<std::unique_ptr<GpuFrames>> create(const flow::FrameDescription& description,
                                                                 Bytes memory, const Place& place);

  [[nodiscard]] AssembleOnGpu work() const { return {view_, words_}; }
  Result<FrameTotals> end() override;
  [[nodiscard]] Bytes gpu_bytes() const override { return {memory_.size()}; }

 private:
  GpuFrames(int gpu, gpu::DeviceBuffer memory, const flow::AssemblerView& view, GpuFrameWords* words);

  int gpu_;
  gpu::DeviceBuffer memory_;
  flow::AssemblerView view_;  ///< addresses of the GPU
  GpuFrameWords* words_;
  gpu::KernelLaunch finish_;
  // Made before kernels run that stay: beside them no kernel that is new to the GPU might begin.
  std::optional<gpu::GpuPlace> place_;
  std::optional<gpu::CudaStream> stream_;
};

/// Returns the __global__ function (AssembleOnGpu), for one CTA of flow::kFrameThreads, that hands over and consumes
/// what is not complete.
[[nodiscard]] const void* end_frames_kernel();

}  // namespace warpline::ingest
