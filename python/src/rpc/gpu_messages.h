// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/held_array.h"
#include "rpc/gpu_requests.h"
#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/lanes/launched_lane.h"
#include "warpline/message/config.h"
#include "warpline/transport/device_stage.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::python {

/// A socket whose messages may lie in the memory of one GPU, which copies them in and out by kernels that end.
class GpuMessages {
 public:
  /// What it is opened with.
  struct Settings {
    int gpu = 0;                                   ///< CUDA ordinal
    std::vector<std::uint16_t> request_methods{};  ///< whose requests are received into its memory
  };

  /// Binds a socket, and sets in `endpoint` what is to be set of it; its receive_bytes are those of the GPU, and of the
  /// host for what is not received there. The calling thread's GPU stays what it is.
  /// Environment error: no such GPU or address, too little memory, or memory that cannot be pinned.
  [[nodiscard]] static Result<std::unique_ptr<GpuMessages>> open(const Settings& settings, const SocketAddress& local,
                                                                 message::EndpointConfig& endpoint);
  /// Waits until nothing is copied any more.
  ~GpuMessages();
  GpuMessages(const GpuMessages&) = delete;
  GpuMessages& operator=(const GpuMessages&) = delete;

  [[nodiscard]] transport::Transport& transport() { return *stage_; }
  [[nodiscard]] std::uint16_t port() const { return socket_->port(); }
  [[nodiscard]] const ArrayGpu& arrays() const { return arrays_; }
  /// Null: requests are received into host memory.
  [[nodiscard]] const std::shared_ptr<GpuRequests>& requests() const { return requests_; }
  /// To be called once by the thread that has the host's loop, before that begins.
  void enter() const;

 private:
  GpuMessages() = default;
  Result<void> set_up(const Settings& settings, const SocketAddress& local, message::EndpointConfig& endpoint);

  ArrayGpu arrays_;
  std::unique_ptr<transport::UdpSocket> socket_;
  std::optional<gpu::HostRegistration> buffers_;
  std::unique_ptr<handoff::LaunchedLane> lane_;
  std::unique_ptr<transport::DeviceStage> stage_;
  std::shared_ptr<GpuRequests> requests_;
};

}  // namespace warpline::python
