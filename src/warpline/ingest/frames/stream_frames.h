// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/frame_description.h"
#include "warpline/flow/frame_queue.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/ingest/batches/batch_assembly.h"
#include "warpline/ingest/frames/frame_consumer.h"
#include "warpline/ingest/frames/frame_expiry.h"
#include "warpline/ingest/frames/frame_sink.h"
#include "warpline/ingest/kept/frame_inbox.h"

namespace warpline::ingest {

/// Which batch is taken next and how many of its descriptors have been, in GPU memory. A batch for which no frame is
/// free stops there, those behind it on the stream leave it alone, and all of them are launched again.
struct BatchTurn {
  std::uint64_t sequence;
  std::uint32_t taken;
};

/// Frames in the memory of a GPU for a FrameConsumer: a StreamEngine gives the batches of one path, a kernel for each
/// assembles them on the engine's stream, and the frames that it hands over are the consumer's on a stream of their
/// own. No kernel waits for frames to be given back: what the consumer does needs the GPU, too. Frames are as
/// HostFrames makes them. Or they are put into an inbox, whose consumer keeps them as long as it likes: while it has
/// all of them no batch is taken, until one comes back or the inbox is closed. Needs device code.
class StreamFrames final : public FrameSink, public BatchAssembly {
 public:
  struct Place {
    int gpu = 0;                       ///< CUDA ordinal
    std::uint32_t path = 0;            ///< queue that batches come from
    std::uint32_t batch = 0;           ///< descriptors of a batch at most
    std::uint32_t slots = 1;           ///< batches that are given at a time, a power of two
    std::uint64_t first_sequence = 1;  ///< of the burst ring
    Nanos watchdog{1'000'000'000};     ///< longest time that the consumer's last frames may take
    Nanos timeout{};                   ///< frames of a stream without packets for so long are handed over; 0: never
  };

  /// Takes `memory` bytes at most, all that it will ever have: frames and their assembler's state in that GPU's memory,
  /// the queue of frames in pinned memory. `consumer` outlives it. A usage error if the memory is too little for the
  /// description.
  [[nodiscard]] static Result<std::unique_ptr<StreamFrames>> create(const flow::FrameDescription& description,
                                                                    Bytes memory, const Place& place,
                                                                    FrameConsumer& consumer);
  /// The same with frames for the consumer of `inbox`.
  [[nodiscard]] static Result<std::unique_ptr<StreamFrames>> create_kept(const flow::FrameDescription& description,
                                                                         Bytes memory, const Place& place,
                                                                         std::shared_ptr<FrameInbox> inbox);
  ~StreamFrames() override;

  bool take(const GpuBatch& batch) override;
  State poll() override;
  [[nodiscard]] bool took(std::uint64_t sequence) const override;

  Result<FrameTotals> end() override;
  [[nodiscard]] Bytes gpu_bytes() const override { return {memory_->device.size()}; }

 private:
  struct InWork {
    gpu::CudaEvent done;  ///< behind the consumer's work
    std::uint32_t buffer = 0;
    std::uint64_t time = 0;
  };
  /// A batch as it was given, until it has been taken.
  struct Given {
    GpuBatch batch{};
    std::uint64_t time = 0;  ///< ticks
  };

  /// What frames, their assembler and their queue lie in: of kept frames it goes with the last of them.
  struct Memory {
    gpu::DeviceBuffer device;
    gpu::PinnedBuffer shared;
  };

  [[nodiscard]] static Result<std::unique_ptr<StreamFrames>> make(const flow::FrameDescription& description,
                                                                  Bytes memory, const Place& place,
                                                                  FrameConsumer* consumer);
  StreamFrames(const Place& place, FrameConsumer* consumer, std::shared_ptr<Memory> memory,
               const flow::AssemblerView& view, std::uint64_t* told);

  [[nodiscard]] bool launch(std::uint64_t sequence);
  /// Has the GPU hand over frames whose time is up, behind the batches that it was given. False when CUDA refuses.
  [[nodiscard]] bool expire();
  /// Launches batches again that stopped for want of a free frame, if frames came back since. `going` if there are none
  /// or it did, `waiting` if not.
  [[nodiscard]] State take_again();
  /// poll() of kept frames.
  [[nodiscard]] State serve_inbox();
  void tell_inbox();
  /// Gives frames back that the stream has passed.
  [[nodiscard]] bool give_back();
  /// Gives frames that were handed over to the consumer.
  [[nodiscard]] State hand_out();
  [[nodiscard]] Error failed() const;
  /// Whether all frames that were handed over are done with, as far as end() waits for that.
  [[nodiscard]] bool idle() const { return inbox_ != nullptr || returned_ == handed_; }

  Place place_;
  FrameConsumer* consumer_;  ///< null: the inbox's
  std::shared_ptr<Memory> memory_;
  flow::AssemblerView view_;
  std::uint64_t* told_;  ///< in pinned memory: the batch to be taken next, as the kernels say
  flow::FrameQueue queue_;
  gpu::KernelLaunch assemble_;
  gpu::KernelLaunch flush_;
  gpu::KernelLaunch expire_;
  // Made before kernels run that stay: beside them no kernel that is new to the GPU might begin.
  std::optional<gpu::GpuPlace> assemble_place_;
  std::optional<gpu::GpuPlace> flush_place_;
  std::optional<gpu::GpuPlace> expire_place_;
  std::optional<gpu::CudaStream> stream_;    ///< the consumer's
  std::optional<gpu::CudaEvent> assembled_;  ///< behind all that was launched
  std::vector<InWork> in_work_;              ///< frames [returned_, handed_)
  std::vector<Given> given_;                 ///< by sequence
  std::uint64_t next_;                       ///< sequence of the batch that is given next
  FrameExpiry expiry_;
  std::uint64_t handed_ = 0;                  ///< frames that the consumer got
  std::uint64_t returned_ = 0;                ///< of these, or of the inbox's: came back
  std::uint64_t returned_before_launch_ = 0;  ///< when the last kernel was launched
  std::uint64_t present_ = 0;                 ///< packets in frames that the consumer got
  std::uint64_t longest_open_ = 0;            ///< ticks
  bool refused_ = false;

  // Frames that an inbox's consumer keeps need these as well.
  std::shared_ptr<FrameInbox> inbox_;
  std::shared_ptr<FrameHome> home_;
  std::uint64_t told_of_ = 0;  ///< frames that the inbox's consumer was told of
  bool waiting_ = false;       ///< the inbox knows that there is no room
};

/// Returns the __global__ function (AssemblerView, PacketBatch, sequence, BatchTurn*, std::uint64_t* told), for one CTA
/// of flow::kFrameThreads, that takes a batch if it is that one's turn.
[[nodiscard]] const void* take_in_turn_kernel();
/// Returns the __global__ function (AssemblerView), for one thread, that hands over what is not complete.
[[nodiscard]] const void* flush_frames_kernel();
/// Returns the __global__ function (AssemblerView, now, limit), for one thread, that hands over frames whose time is
/// up.
[[nodiscard]] const void* expire_frames_kernel();

}  // namespace warpline::ingest
