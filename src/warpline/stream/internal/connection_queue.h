// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpline::stream {

/// A queue of connections. A flag of each says that it stands in the queue, so that none is in it twice and it is never
/// full; who takes one out clears the flag.
class ConnectionQueue {
 public:
  explicit ConnectionQueue(std::uint32_t capacity) : indices_(capacity) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }
  void push(std::uint32_t index) { indices_[(first_ + size_++) % indices_.size()] = index; }
  [[nodiscard]] std::uint32_t pop() {
    const std::uint32_t index = indices_[first_];
    first_ = (first_ + 1) % indices_.size();
    --size_;
    return index;
  }

 private:
  std::vector<std::uint32_t> indices_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace warpline::stream
