// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace warpline::traffic {

/// Zeros, fixed in number. A large one takes memory only where it has been written to: there may be one for each pair
/// of a generator and a checker, few of which ever meet.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivial_v<T>);

 public:
  explicit ZeroedArray(std::size_t size) : size_(size), data_(static_cast<T*>(std::calloc(size, sizeof(T)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  [[nodiscard]] T& operator[](std::size_t i) { return data_.get()[i]; }
  [[nodiscard]] T* begin() { return data_.get(); }
  [[nodiscard]] T* end() { return data_.get() + size_; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::size_t size_;
  std::unique_ptr<T, Free> data_;
};

}  // namespace warpline::traffic
