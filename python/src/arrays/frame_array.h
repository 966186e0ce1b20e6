// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "arrays/dlpack.h"

struct CUstream_st;

namespace warpline::python {

/// What arrays of GPU memory tell its owner.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  /// An array that was taken on that cudaStream_t is gone; the stream may have work left that reads it. Any thread.
  virtual void used_by(std::uintptr_t stream) = 0;
};

/// What keeps memory of a GPU until it is destroyed, for arrays of it. `Kept` is told by its used_by().
template <typename Kept>
class KeptOnGpu final : public StreamUser {
 public:
  explicit KeptOnGpu(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
  void used_by(std::uintptr_t stream) override { kept_->used_by(reinterpret_cast<CUstream_st*>(stream)); }

 private:
  std::shared_ptr<Kept> kept_;
};

/// One dimension of bytes, truth values or 64-bit numbers, in memory that stays as long as `owner`: for Python an
/// object with the buffer protocol, where it is the host's, and DLPack.
class FrameArray {
 public:
  FrameArray(std::shared_ptr<const void> owner, void* data, std::uint64_t size, DlDataType dtype)
      : owner_(std::move(owner)), data_(data), size_(size), shape_(static_cast<Py_ssize_t>(size)), dtype_(dtype) {}
  /// The same on a GPU.
  FrameArray(std::shared_ptr<StreamUser> owner, int gpu, void* data, std::uint64_t size, DlDataType dtype)
      : FrameArray(std::shared_ptr<const void>(owner), data, size, dtype) {
    device_ = {DlDeviceType::cuda, gpu};
    user_ = owner.get();
  }
  /// Bytes that nobody may write to.
  FrameArray(std::shared_ptr<const void> owner, std::span<const std::uint8_t> bytes)
      : FrameArray(std::move(owner), const_cast<std::uint8_t*>(bytes.data()), bytes.size(), kDlUint8) {
    read_only_ = true;
  }

  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }  ///< elements
  [[nodiscard]] std::uint64_t bytes() const { return size_ * dtype_.bits / 8; }
  [[nodiscard]] Py_ssize_t* shape() const { return &shape_; }
  [[nodiscard]] DlDataType dtype() const { return dtype_; }
  [[nodiscard]] bool read_only() const { return read_only_; }
  [[nodiscard]] DlDevice device() const { return device_; }
  [[nodiscard]] StreamUser* user() const { return user_; }  ///< the owner, of GPU memory; null: host memory

 private:
  std::shared_ptr<const void> owner_;
  void* data_;
  std::uint64_t size_;
  mutable Py_ssize_t shape_;  ///< Python's buffers want its address, and read it
  DlDataType dtype_;
  bool read_only_ = false;
  DlDevice device_{DlDeviceType::cpu, 0};
  StreamUser* user_ = nullptr;
};

/// Adds the class to the module.
void add_frame_array(nanobind::module_& module);

}  // namespace warpline::python
