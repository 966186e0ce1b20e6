// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace warpline::vnic {

/// Memory of the device for payload: whole pages of its own, so that it can be registered with others (CUDA, which
/// takes pages and no page twice). Not initialised.
class PayloadMemory {
 public:
  static constexpr std::size_t kPage = 4096;

  PayloadMemory() = default;
  /// `bytes` is rounded up to whole pages.
  explicit PayloadMemory(std::size_t bytes)
      : pages_((bytes + kPage - 1) / kPage), memory_(std::make_unique_for_overwrite<Page[]>(pages_)) {}

  [[nodiscard]] std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(memory_.get()); }
  [[nodiscard]] std::size_t size() const { return pages_ * kPage; }
  [[nodiscard]] std::span<std::uint8_t> bytes() const { return {data(), size()}; }

 private:
  struct alignas(kPage) Page {
    std::uint8_t bytes[kPage];
  };

  std::size_t pages_ = 0;
  std::unique_ptr<Page[]> memory_;
};

}  // namespace warpline::vnic
