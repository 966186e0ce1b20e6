// SPDX-License-Identifier: Apache-2.0
#include "sim/allocations.h"

#include <cstdlib>
#include <new>

namespace {

// The simulator has one thread.
int forbidden = 0;
std::uint64_t violated = 0;

#ifndef WARPLINE_SANITIZED  // sanitizers replace the operators themselves
void* allocate(std::size_t bytes) {
  if (forbidden > 0) ++violated;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
#endif

}  // namespace

#ifndef WARPLINE_SANITIZED
void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace warpline::sim {

NoAllocations::NoAllocations(bool checked) : checked_(checked ? 1 : 0) { forbidden += checked_; }
NoAllocations::~NoAllocations() { forbidden -= checked_; }
std::uint64_t NoAllocations::violations() { return violated; }

}  // namespace warpline::sim
