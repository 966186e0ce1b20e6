// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::python {

// The structures of DLPack's C interface, version 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), by which
// libraries of arrays hand memory to each other.

enum class DlDeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3 };

struct DlDevice {
  DlDeviceType type;
  std::int32_t id;
};

struct DlDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
inline constexpr DlDataType kDlInt64{0, 64, 1};
inline constexpr DlDataType kDlUint8{1, 8, 1};
inline constexpr DlDataType kDlBool{6, 8, 1};

struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t ndim;
  DlDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< elements
  std::uint64_t byte_offset;
};

/// What a capsule "dltensor" has.
struct DlManagedTensor {
  DlTensor tensor;
  void* manager_context;
  void (*deleter)(DlManagedTensor* self);
};

struct DlVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
inline constexpr DlVersion kDlVersion{1, 0};
inline constexpr std::uint64_t kDlReadOnly = 1;
inline constexpr std::uint64_t kDlIsCopied = 2;

/// What a capsule "dltensor_versioned" has.
struct DlManagedTensorVersioned {
  DlVersion version;
  void* manager_context;
  void (*deleter)(DlManagedTensorVersioned* self);
  std::uint64_t flags;
  DlTensor tensor;
};

}  // namespace warpline::python
