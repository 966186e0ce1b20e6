// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::sim {

/// While one of these lives, and `checked`, each `new` counts as a violation (allocations.cc replaces the operator, but
/// not under sanitizers).
class NoAllocations {
 public:
  explicit NoAllocations(bool checked);
  ~NoAllocations();
  NoAllocations(const NoAllocations&) = delete;
  NoAllocations& operator=(const NoAllocations&) = delete;

  [[nodiscard]] static std::uint64_t violations();

 private:
  int checked_;
};

}  // namespace warpline::sim
