// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline {

// Words of 64 bits that several threads use at the same time, by the atomics that nvcc has built in since CUDA 12.8
// (CUDA C++ Programming Guide, "Atomic Functions"). `<cuda/atomic>` makes the same instructions, and takes the compiler
// three seconds to read in each kernel's file.

/// `SystemWord` is a word that a GPU shares with the host. It is a view: the word outlives it.
class SystemWord {
 public:
  explicit __device__ SystemWord(std::uint64_t& word) : word_(&word) {}

  /// Returns the word. What its writer wrote before is visible.
  [[nodiscard]] __device__ std::uint64_t load_acquire() const {
    return __nv_atomic_load_n(word_, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_SYSTEM);
  }
  /// Writes the word. What was written before is visible to who reads it.
  __device__ void store_release(std::uint64_t value) const {
    __nv_atomic_store_n(word_, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM);
  }

 private:
  std::uint64_t* word_;
};

/// `DeviceWord` is a word that the threads of one GPU share. It is a view: the word outlives it.
class DeviceWord {
 public:
  explicit __device__ DeviceWord(std::uint64_t& word) : word_(&word) {}

  /// Returns the word. What its writer wrote before is visible.
  [[nodiscard]] __device__ std::uint64_t load_acquire() const {
    return __nv_atomic_load_n(word_, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  }
  /// Writes the word. What was written before is visible to who reads it.
  __device__ void store_release(std::uint64_t value) const {
    __nv_atomic_store_n(word_, value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  }
  /// Adds to the word and returns what it was. All such calls have one order, sequentially consistent.
  __device__ std::uint64_t fetch_add(std::uint64_t n) const {
    return __nv_atomic_fetch_add(word_, n, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
  }
  /// Adds to a count, which orders nothing else.
  __device__ void add(std::uint64_t n) const {
    __nv_atomic_fetch_add(word_, n, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }

 private:
  std::uint64_t* word_;
};

}  // namespace warpline
