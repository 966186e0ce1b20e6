// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "arrays/frame_array.h"
#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/stream_tickets.h"
#include "warpline/message/config.h"
#include "warpline/message/receive_memory.h"
#include "warpline/transport/device_stage.h"

namespace warpline::python {

/// Memory of a GPU for peers' requests of some methods, and host memory for those of others. What was received stays
/// until the endpoint has given it back, the last array of it is gone, and the streams that such arrays were taken on
/// have done what they had been given until then.
class GpuRequests {
 public:
  /// `bytes` of each kind of memory. On the calling thread's GPU. Environment error: there is not so much.
  [[nodiscard]] static Result<std::shared_ptr<GpuRequests>> create(std::uint64_t bytes,
                                                                   std::span<const std::uint16_t> methods);
  GpuRequests(const GpuRequests&) = delete;
  GpuRequests& operator=(const GpuRequests&) = delete;

  /// For EndpointConfig, whose copies `stage`, which outlives the endpoint, makes.
  [[nodiscard]] message::BufferSource source(transport::DeviceStage& stage);

  /// A request that Python has, as long as this lives. Any thread, one at a time.
  class Held final : public StreamUser {
   public:
    Held(std::shared_ptr<GpuRequests> room, const std::uint8_t* data);
    ~Held() override;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    /// What that stream was given so far is waited for before the request's memory is used again.
    void used_by(std::uintptr_t stream) override;

   private:
    std::shared_ptr<GpuRequests> room_;
    const std::uint8_t* data_;
  };

 private:
  /// Who has a block, by its first kMinBlock.
  struct Block {
    std::atomic<std::uint32_t> holders{0};
    std::atomic<std::uint64_t> ticket{0};  ///< of Python's last look
  };
  /// Nobody has it any more; it is free once the ticket is done.
  struct Returned {
    std::uint8_t* data = nullptr;
    std::uint64_t ticket = 0;
  };

  GpuRequests(gpu::DeviceBuffer memory, std::unique_ptr<gpu::StreamTickets> tickets, std::uint64_t bytes);
  static message::MutableBuffer take(void* self, message::SessionId, std::uint16_t code, std::uint32_t length);
  static void give(void* self, message::MutableBuffer buffer);
  [[nodiscard]] Block& block_of(const std::uint8_t* data);
  void collect();

  gpu::DeviceBuffer memory_;
  std::unique_ptr<gpu::StreamTickets> tickets_;
  std::vector<bool> methods_;
  std::vector<Block> blocks_;

  std::mutex returning_;         ///< Python's threads, one at a time
  SpscRing<Returned> returned_;  ///< to the host's thread

  // The host's thread.
  transport::DeviceStage* stage_ = nullptr;
  message::ReceiveMemory device_;
  message::ReceiveMemory host_;
  std::deque<Returned> waiting_;
};

}  // namespace warpline::python
