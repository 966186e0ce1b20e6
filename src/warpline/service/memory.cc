// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/memory.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/handoff/lanes/gpu_lane.h"

namespace warpline::service {
namespace {

constexpr Bytes kGpuAlignment{64 << 10};  ///< that NICs see of a GPU's memory
constexpr std::uint64_t kHashes = 4096;   ///< blocks that are hashed at once

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::uint64_t pattern_bytes(const MessageMemorySetup& setup) {
  return round_up(MessagePattern::bytes_for(setup.longest), kGpuAlignment.value);
}

}  // namespace

std::uint64_t MessageMemorySetup::client_room(const MessageClient::Plan& plan) {
  const std::uint64_t each = round_up(plan.length, MessageClient::kAlignment);
  return round_up(std::max<std::uint64_t>(each * plan.peers.size() * plan.outstanding, 1), kGpuAlignment.value);
}

std::uint64_t MessageMemorySetup::bytes() const {
  return std::accumulate(rooms.begin(), rooms.end(), pattern_bytes(*this));
}

Result<std::unique_ptr<MessageMemory>> MessageMemory::make(MessageMemorySetup setup, const MessagePattern& pattern,
                                                           transport::MessagePort* port) {
  WARPLINE_TRY(const gpu::GpuFacts gpu, gpu::find_gpu(setup.gpu));
  WARPLINE_CHECK(gpu::use_gpu(gpu.ordinal));
  std::unique_ptr<MessageMemory> made(new MessageMemory(std::move(setup)));
  made->gpu_name_ = gpu.name;
  WARPLINE_CHECK(made->take(port));
  WARPLINE_CHECK(made->fill(pattern));
  std::span<std::uint8_t> left = made->all_.subspan(pattern_bytes(made->setup_));
  for (const std::uint64_t room : made->setup_.rooms) {
    auto worker = std::make_unique<Worker>();
    worker->room = left.first(room);
    left = left.subspan(worker->room.size());
    made->workers_.push_back(std::move(worker));
  }
  return made;
}

Result<void> MessageMemory::take(transport::MessagePort* port) {
  const std::uint64_t size = setup_.bytes();
  std::span<std::byte> memory;
  if (device()) {
    WARPLINE_TRY(gpu_, memory::GpuMemory::of_machine().allocate(setup_.gpu, Bytes{size}, kGpuAlignment));
    memory = gpu_.bytes;
  } else if (port != nullptr) {
    WARPLINE_TRY(const std::span<std::uint8_t> bytes, port->allocate(size));
    memory = std::as_writable_bytes(bytes);
    WARPLINE_TRY(gpu::HostRegistration opened, gpu::HostRegistration::create(memory));
    opened_.emplace(std::move(opened));
  } else {
    WARPLINE_TRY(gpu::PinnedBuffer pinned, gpu::PinnedBuffer::create(Bytes{size}));
    memory = pinned.bytes();
    pinned_.emplace(std::move(pinned));
  }
  all_ = {reinterpret_cast<std::uint8_t*>(memory.data()), memory.size()};
  return {};
}

Result<void> MessageMemory::fill(const MessagePattern& pattern) {
  const std::uint64_t length = MessagePattern::bytes_for(setup_.longest);
  if (device()) {
    WARPLINE_TRY(const gpu::CudaStream stream, gpu::CudaStream::create());
    WARPLINE_CHECK(stream.copy(all_.data(), pattern.slice(0), length));
    WARPLINE_CHECK(stream.wait());
  } else {
    // Not by CUDA, which takes no bytes of which some are pinned and some are not: a page may hold the ends of both.
    std::memcpy(all_.data(), pattern.slice(0), length);
  }
  pattern_ = MessagePattern::copied_to(all_.data());
  return {};
}

Result<transport::Transport*> MessageMemory::add_worker(std::uint16_t number, transport::Transport& transport,
                                                        transport::UdpSocket* socket) {
  Worker& worker = *workers_[number];
  WARPLINE_CHECK(gpu::use_gpu(setup_.gpu));
  if (setup_.server) worker.blocks.emplace(worker.room);
  if (setup_.hashes) {
    WARPLINE_TRY(gpu::PinnedBuffer words, gpu::PinnedBuffer::create(Bytes{kHashes * sizeof(std::uint64_t)}));
    WARPLINE_TRY(worker.hashes, handoff::make_gpu_lane(handoff::GpuLaneWork::hash, setup_.gpu));
    worker.words.emplace(std::move(words));
    worker.hasher.emplace(*worker.hashes, std::span(reinterpret_cast<std::uint64_t*>(worker.words->data()), kHashes));
  }
  if (!device()) return &transport;
  if (socket != nullptr) {
    WARPLINE_TRY(gpu::HostRegistration buffers, gpu::HostRegistration::create(socket->memory()));
    worker.buffers.emplace(std::move(buffers));
  }
  WARPLINE_TRY(worker.copies, handoff::make_gpu_lane(handoff::GpuLaneWork::copy, setup_.gpu));
  worker.stage = std::make_unique<transport::DeviceStage>(transport, *worker.copies);
  return worker.stage.get();
}

message::MutableBuffer MessageMemory::lend(void* context, message::SessionId, std::uint16_t, std::uint32_t length) {
  auto& worker = *static_cast<Worker*>(context);
  if (!worker.freed.empty() && worker.stage->quiet()) {
    for (std::uint8_t* const buffer : worker.freed) worker.blocks->give(buffer);
    worker.freed.clear();
  }
  return {worker.blocks->take(length), length, worker.stage != nullptr};
}

void MessageMemory::take_back(void* context, message::MutableBuffer buffer) {
  auto& worker = *static_cast<Worker*>(context);
  if (worker.stage == nullptr || worker.stage->quiet()) {
    worker.blocks->give(buffer.data);
  } else {
    worker.freed.push_back(buffer.data);
  }
}

void MessageMemory::apply(std::uint16_t number, message::EndpointConfig& endpoint) {
  Worker& worker = *workers_[number];
  if (worker.stage) endpoint.placer = worker.stage->placer();
  if (!worker.blocks) return;
  endpoint.receive_bytes = 1U << 20;  // for what is copied
  endpoint.buffers = {&worker, lend, take_back};
  worker.freed.reserve(endpoint.max_messages);
}

MessageStore MessageMemory::store(std::uint16_t number) {
  Worker& worker = *workers_[number];
  return {&pattern_, worker.room, device(), worker.hasher ? &*worker.hasher : nullptr};
}

Result<void> MessageMemory::start() {
  for (const auto& worker : workers_) {
    if (worker->hashes) WARPLINE_CHECK(worker->hashes->start());
    if (worker->copies) WARPLINE_CHECK(worker->copies->start());
  }
  return {};
}

void MessageMemory::stop() {
  for (const auto& worker : workers_) {
    if (worker->copies) worker->copies->stop();
    if (worker->hashes) worker->hashes->stop();
  }
}

std::optional<Error> MessageMemory::failure() const {
  for (const auto& worker : workers_) {
    for (const PieceLane* const lane : {worker->copies.get(), worker->hashes.get()}) {
      if (lane == nullptr) continue;
      if (std::optional<Error> failure = lane->failure()) return failure;
    }
  }
  return std::nullopt;
}

nlohmann::ordered_json MessageMemory::facts() const {
  std::uint64_t counts[4] = {};
  for (const auto& worker : workers_) {
    if (!worker->stage) continue;
    const transport::DeviceStageCounters& copies = worker->stage->copies();
    const Counter* const counters[4] = {&copies.placed, &copies.placed_bytes, &copies.fetched, &copies.fetched_bytes};
    for (int i = 0; i < 4; ++i) counts[i] += counters[i]->get();
  }
  nlohmann::ordered_json facts = {{"ordinal", setup_.gpu}, {"name", gpu_name_}};
  facts["memory"] = device() ? "device" : "pinned";
  facts["bytes"] = all_.size();
  if (!device()) return facts;
  facts["copies_in"] = {{"pieces", counts[0]}, {"bytes", counts[1]}};
  facts["copies_out"] = {{"pieces", counts[2]}, {"bytes", counts[3]}};
  return facts;
}

}  // namespace warpline::service
