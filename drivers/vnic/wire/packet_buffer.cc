// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/packet_buffer.h"

namespace warpline::vnic {

PacketBuffer::PacketBuffer(std::size_t bytes)
    : size_((std::uint64_t{bytes} + 63) & ~std::uint64_t{63}), memory_(size_ + record_bytes(kMaxFrame)) {}

bool PacketBuffer::has_room(std::uint64_t need) {
  seen_read_ = read_.load(std::memory_order_acquire);
  return write_bytes_ + need - seen_read_ <= size_;
}

void PacketBuffer::begin_anew_if_empty() {
  look_at_ += kLookEvery;
  seen_read_ = read_.load(std::memory_order_acquire);
  if (seen_read_ != write_bytes_) return;
  begin_anew();
  // The consumer sees it no later than the next frame, which commit() releases.
  anew_from_.store(write_bytes_, std::memory_order_relaxed);
}

void PacketBuffer::clear() {
  begin_anew();
  write_bytes_ = reserved_ = seen_read_ = 0;
  read_bytes_ = read_at_ = seen_written_ = 0;
  written_.store(0, std::memory_order_relaxed);
  read_.store(0, std::memory_order_relaxed);
  pushed_.store(0, std::memory_order_relaxed);
  taken_.store(0, std::memory_order_relaxed);
  anew_from_.store(~std::uint64_t{0}, std::memory_order_relaxed);
}

std::uint64_t PacketBuffer::frames() const {
  // Taken first: a frame pushed in between counts as there, never as fewer than none.
  const std::uint64_t taken = taken_.load(std::memory_order_acquire);
  return pushed_.load(std::memory_order_relaxed) - taken;
}

}  // namespace warpline::vnic
