// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/large_vector.h"

namespace warpline::message {

/// Contiguous buffers of any size out of one piece of memory: a buddy system (Knowlton, CACM 1965) of blocks of powers
/// of two. take() and give() are O(log(size)).
class ReceiveMemory {
 public:
  static constexpr std::uint32_t kMinBlock = 2048;

  /// `bytes` is rounded down to whole blocks.
  explicit ReceiveMemory(std::uint64_t bytes);
  /// The same of memory of somebody else's, which is never touched: it may be a GPU's. Outlives this.
  explicit ReceiveMemory(std::span<std::uint8_t> memory);

  /// At least `length` bytes, or nullptr if no block of that size is free.
  [[nodiscard]] std::uint8_t* take(std::uint64_t length);
  /// Bytes that take() sets aside for so many.
  [[nodiscard]] static std::uint64_t block_bytes(std::uint64_t length) {
    return std::bit_ceil(std::max<std::uint64_t>(length, kMinBlock));
  }
  /// Takes back a buffer of take(). Returns the bytes that were set aside for it.
  std::uint64_t give(std::uint8_t* buffer);

  /// Whether take() gave it.
  [[nodiscard]] bool holds(const std::uint8_t* buffer) const {
    return std::less_equal<>()(memory_, buffer) && std::less<>()(buffer, memory_ + capacity());
  }

  [[nodiscard]] std::uint64_t capacity() const { return std::uint64_t{blocks_} * kMinBlock; }
  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }

 private:
  static constexpr unsigned kOrders = 32;
  static constexpr std::uint32_t kEnd = 0xffffffffU;
  static constexpr std::uint8_t kNotHead = 0xff;
  static constexpr std::uint8_t kTaken = 0x80;

  /// One for each smallest block; means something in a block's first.
  struct Node {
    std::uint32_t next;
    std::uint32_t previous;
    std::uint8_t order;  ///< with kTaken if it is; kNotHead inside of a block
  };

  /// Frees bytes that were allocated without being written, so that their pages are taken only as they are used.
  struct Free {
    std::size_t size;
    void operator()(std::uint8_t* bytes) const { LargeAllocator<std::uint8_t>().deallocate(bytes, size); }
  };
  using Own = std::unique_ptr<std::uint8_t[], Free>;

  ReceiveMemory(std::uint32_t blocks, std::uint8_t* bytes, Own own);
  void push(std::uint32_t block, unsigned order);
  void unlink(std::uint32_t block, unsigned order);

  std::uint32_t blocks_;
  std::uint64_t free_bytes_ = 0;
  Own own_;
  std::uint8_t* memory_;
  std::vector<Node> nodes_;
  std::array<std::uint32_t, kOrders> free_;
  std::uint32_t occupied_ = 0;  ///< bit o: free_[o] has a block
};

}  // namespace warpline::message
