// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace warpline::python {

/// The GPU whose arrays somebody takes, and the stream that orders what he does with them after what filled them.
struct ArrayGpu {
  int ordinal = 0;
  std::uintptr_t stream = 0;  ///< a CUstream
};

/// Bytes of an object of Python's, in one piece: of one with the buffer protocol, or with DLPack. The object keeps them
/// as long as this holds it. The caller of all functions is a thread that Python knows.
class HeldArray {
 public:
  HeldArray() = default;
  /// Takes hold of the object, which `what` names in exceptions. TypeError: it is no array, or not of numbers, or
  /// neither in host memory nor in that of `gpu`, null for none. ValueError: it is not in one piece, or, if `writable`,
  /// must not be written to.
  HeldArray(nanobind::handle object, const char* what, bool writable, const ArrayGpu* gpu = nullptr);
  HeldArray(HeldArray&& other) noexcept;
  HeldArray& operator=(HeldArray&& other) noexcept;
  ~HeldArray() { release(); }

  [[nodiscard]] std::span<std::uint8_t> bytes() const { return {data_, size_}; }
  [[nodiscard]] bool on_gpu() const { return on_gpu_; }                 ///< nothing for the CPU to read
  [[nodiscard]] std::size_t item_bytes() const { return item_bytes_; }  ///< of each number
  [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }  ///< the first dimension, if there is one
  void release();                                           ///< lets go of it

 private:
  /// False: the object gives no buffer, and Python's error says why.
  bool take_buffer(nanobind::handle object, const char* what, bool writable);
  void take_dlpack(nanobind::handle object, const char* what, bool writable, const ArrayGpu* gpu);

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t item_bytes_ = 0;
  std::size_t dimensions_ = 0;
  std::size_t rows_ = 0;
  bool on_gpu_ = false;
  Py_buffer view_{};  ///< `obj` null: there is none
  nanobind::ndarray<> array_;
};

}  // namespace warpline::python
