// SPDX-License-Identifier: Apache-2.0
#include "rpc/gpu_messages.h"

#include <algorithm>
#include <bit>
#include <system_error>
#include <thread>
#include <utility>

#include "warpline/gpu/device.h"

namespace warpline::python {
namespace {

constexpr std::uint64_t kOwnBytes = 1 << 20;  ///< of an endpoint that receives into memory of others
/// A round trip has the time in it that payload waits here for the GPU, tens of microseconds: no sign of congestion.
constexpr Nanos kLaunches{200'000};

}  // namespace

Result<std::unique_ptr<GpuMessages>> GpuMessages::open(const Settings& settings, const SocketAddress& local,
                                                       message::EndpointConfig& endpoint) {
  std::unique_ptr<GpuMessages> made(new GpuMessages);
  Result<void> ready;
  try {
    // CUDA's current GPU is each thread's: the caller keeps his.
    std::thread([&] { ready = made->set_up(settings, local, endpoint); }).join();
  } catch (const std::system_error& error) {
    return environment_error("thread that sets up a GPU", error.code().message(), "raise `ulimit -u`");
  }
  WARPLINE_CHECK(ready);
  return made;
}

Result<void> GpuMessages::set_up(const Settings& settings, const SocketAddress& local,
                                 message::EndpointConfig& endpoint) {
  WARPLINE_TRY(lane_, handoff::make_launched_lane(settings.gpu));
  WARPLINE_TRY(socket_, transport::UdpSocket::open({.local = local, .datagram_bytes = endpoint.datagram_bytes}));
  WARPLINE_TRY(gpu::HostRegistration buffers, gpu::HostRegistration::create(socket_->memory()));
  buffers_.emplace(std::move(buffers));
  stage_ = std::make_unique<transport::DeviceStage>(*socket_, *lane_);
  arrays_ = {settings.gpu, reinterpret_cast<std::uintptr_t>(lane_->stream())};
  endpoint.placer = stage_->placer();
  endpoint.cc.swift.base_target.value += kLaunches.value;
  if (settings.request_methods.empty()) return {};
  WARPLINE_TRY(requests_, GpuRequests::create(endpoint.receive_bytes, settings.request_methods));
  endpoint.buffers = requests_->source(*stage_);
  // What no buffer of this memory holds is refused, as an endpoint does with its own.
  endpoint.max_message_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(endpoint.max_message_bytes, std::bit_floor(endpoint.receive_bytes)));
  endpoint.receive_bytes = kOwnBytes;
  return {};
}

GpuMessages::~GpuMessages() {
  if (lane_) lane_->stop();
}

void GpuMessages::enter() const {
  // open() has used it, so that it is there.
  (void)gpu::use_gpu(arrays_.ordinal);
}

}  // namespace warpline::python
