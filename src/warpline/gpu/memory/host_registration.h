// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "warpline/base/result.h"

namespace warpline::gpu {

/// Host memory that every GPU of the process may read and write, pinned for as long as this lives; the memory is its
/// caller's.
class HostRegistration {
 public:
  /// Registers the whole pages that `memory` touches, none of which may be registered already. CPU and GPU use the same
  /// addresses: a GPU that cannot is refused. A memlock limit or a permission in the way is an environment error.
  [[nodiscard]] static Result<HostRegistration> create(std::span<std::byte> memory);

  /// The registered pages.
  [[nodiscard]] std::span<std::byte> memory() const { return {memory_.get(), size_}; }

 private:
  struct Unregister {
    void operator()(std::byte* start) const;
  };
  HostRegistration(std::byte* start, std::size_t size) : memory_(start), size_(size) {}

  std::unique_ptr<std::byte, Unregister> memory_;
  std::size_t size_;
};

}  // namespace warpline::gpu
