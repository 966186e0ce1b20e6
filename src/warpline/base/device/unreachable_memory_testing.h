// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace warpline {

/// For tests: memory at addresses that end whoever touches them. Only who knows the other addresses of the same pages,
/// as a lane does, gets at the bytes.
class UnreachableMemory {
 public:
  explicit UnreachableMemory(std::size_t bytes) : bytes_(bytes) {
    const int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
    device_ = map(file, PROT_NONE);
    reachable_ = map(file, PROT_READ | PROT_WRITE);
    close(file);
  }
  ~UnreachableMemory() {
    munmap(device_, bytes_);
    munmap(reachable_, bytes_);
  }
  UnreachableMemory(const UnreachableMemory&) = delete;
  UnreachableMemory& operator=(const UnreachableMemory&) = delete;

  /// As the program knows it.
  [[nodiscard]] std::span<std::uint8_t> device() const { return {device_, bytes_}; }
  [[nodiscard]] bool holds(const void* address) const {
    return address >= device_ && address < static_cast<const void*>(device_ + bytes_);
  }
  /// Where the bytes at that address of either kind may be touched.
  [[nodiscard]] std::uint8_t* reach(const void* address) const {
    auto* const at = static_cast<std::uint8_t*>(const_cast<void*>(address));
    return holds(address) ? reachable_ + (at - device_) : at;
  }

 private:
  [[nodiscard]] std::uint8_t* map(int file, int protection) const {
    void* const at = mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<std::uint8_t*>(at);
  }

  std::size_t bytes_;
  std::uint8_t* device_ = nullptr;
  std::uint8_t* reachable_ = nullptr;
};

}  // namespace warpline
