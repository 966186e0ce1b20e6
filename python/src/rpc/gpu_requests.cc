// SPDX-License-Identifier: Apache-2.0
#include "rpc/gpu_requests.h"

#include <utility>

namespace warpline::python {
namespace {

constexpr std::size_t kMethods = 1 << 16;

std::uint8_t* bytes_of(const gpu::DeviceBuffer& memory) { return reinterpret_cast<std::uint8_t*>(memory.data()); }

}  // namespace

Result<std::shared_ptr<GpuRequests>> GpuRequests::create(std::uint64_t bytes, std::span<const std::uint16_t> methods) {
  WARPLINE_TRY(gpu::DeviceBuffer memory, gpu::DeviceBuffer::create(Bytes{bytes}));
  WARPLINE_TRY(auto tickets, gpu::StreamTickets::create());
  std::shared_ptr<GpuRequests> made(new GpuRequests(std::move(memory), std::move(tickets), bytes));
  for (const std::uint16_t method : methods) made->methods_[method] = true;
  return made;
}

GpuRequests::GpuRequests(gpu::DeviceBuffer memory, std::unique_ptr<gpu::StreamTickets> tickets, std::uint64_t bytes)
    : memory_(std::move(memory)),
      tickets_(std::move(tickets)),
      methods_(kMethods),
      blocks_(bytes / message::ReceiveMemory::kMinBlock),
      returned_(static_cast<std::uint32_t>(blocks_.size())),
      device_(std::span(bytes_of(memory_), bytes)),
      host_(bytes) {}

message::BufferSource GpuRequests::source(transport::DeviceStage& stage) {
  stage_ = &stage;
  return {this, take, give};
}

GpuRequests::Block& GpuRequests::block_of(const std::uint8_t* data) {
  return blocks_[static_cast<std::size_t>(data - bytes_of(memory_)) / message::ReceiveMemory::kMinBlock];
}

/// Frees what nobody has, reads or copies to any more.
void GpuRequests::collect() {
  for (Returned returned; returned_.pop(returned);) waiting_.push_back(returned);
  if (waiting_.empty() || !stage_->quiet()) return;
  std::erase_if(waiting_, [&](const Returned& returned) {
    if (!tickets_->is_done(returned.ticket)) return false;
    device_.give(returned.data);
    return true;
  });
}

message::MutableBuffer GpuRequests::take(void* self, message::SessionId /*session*/, std::uint16_t code,
                                         std::uint32_t length) {
  auto& room = *static_cast<GpuRequests*>(self);
  if (!room.methods_[code]) return {room.host_.take(length), length};
  room.collect();
  std::uint8_t* const data = room.device_.take(length);
  if (data != nullptr) {
    Block& block = room.block_of(data);
    block.ticket.store(0, std::memory_order_relaxed);
    block.holders.store(1, std::memory_order_relaxed);
  }
  return {data, length, true};
}

void GpuRequests::give(void* self, message::MutableBuffer buffer) {
  auto& room = *static_cast<GpuRequests*>(self);
  if (!buffer.device) {
    room.host_.give(buffer.data);
    return;
  }
  Block& block = room.block_of(buffer.data);
  if (block.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // Python has it still
  room.waiting_.push_back({buffer.data, block.ticket.load(std::memory_order_relaxed)});
}

GpuRequests::Held::Held(std::shared_ptr<GpuRequests> room, const std::uint8_t* data)
    : room_(std::move(room)), data_(data) {
  room_->block_of(data_).holders.fetch_add(1, std::memory_order_relaxed);
}

void GpuRequests::Held::used_by(std::uintptr_t stream) {
  // Nobody knows when the work of a stream that is gone is done: the memory is not used again.
  if (!room_->tickets_->wait_for(reinterpret_cast<CUstream_st*>(stream)))
    room_->block_of(data_).ticket.store(gpu::StreamTickets::kNever, std::memory_order_relaxed);
}

GpuRequests::Held::~Held() {
  Block& block = room_->block_of(data_);
  std::uint64_t ticket = block.ticket.load(std::memory_order_relaxed);
  if (ticket != gpu::StreamTickets::kNever) {
    ticket = room_->tickets_->draw();
    block.ticket.store(ticket, std::memory_order_relaxed);
  }
  if (block.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // the endpoint has it still
  const std::scoped_lock lock(room_->returning_);
  (void)room_->returned_.push({const_cast<std::uint8_t*>(data_), ticket});
}

}  // namespace warpline::python
