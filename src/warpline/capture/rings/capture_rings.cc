// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/rings/capture_rings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace warpline::capture {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

bool CaptureRings::map_memory() {
  void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(memory);
  return true;
}

Result<CaptureRings> CaptureRings::make(std::uint32_t count, RingShape shape) {
  CaptureRings rings(memfd_create("warpline-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING), count, shape);
  const auto size = static_cast<off_t>(rings.bytes());
  // A kernel that has no memory says so here, and not to a thread that touches it.
  const bool made = rings.descriptor_ >= 0 && ftruncate(rings.descriptor_, size) == 0 &&
                    fallocate(rings.descriptor_, 0, 0, size) == 0 &&
                    fcntl(rings.descriptor_, F_ADD_SEALS, kSeals) == 0 && rings.map_memory();
  if (made) return rings;
  return environment_error("cannot make the rings of a capture",
                           fmt::format("{} for {} bytes", std::strerror(errno), rings.bytes()), "free some memory");
}

Result<CaptureRings> CaptureRings::map(int descriptor, std::uint32_t count, RingShape shape) {
  CaptureRings rings(descriptor, count, shape);
  constexpr std::uint32_t kMostSlots = 1U << 24;
  struct stat facts{};
  const bool fits = count != 0 && count <= kMost && shape.snaplen <= kLargestSnaplen && shape.slots <= kMostSlots &&
                    std::has_single_bit(shape.slots) && fstat(descriptor, &facts) == 0 &&
                    facts.st_size == static_cast<off_t>(rings.bytes()) &&
                    (fcntl(descriptor, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
  if (fits && rings.map_memory()) return rings;
  return Error{ErrorKind::peer, "cannot attach to the process", "what it offers are no rings of a capture",
               "start both with the same version"};
}

CaptureRings::~CaptureRings() {
  if (memory_ != nullptr) munmap(memory_, bytes());
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace warpline::capture
