// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/ring_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace warpline::stream {
namespace {

/// Returns how many mappings a process may have; 0 if that is not known.
std::uint64_t mappings_at_most() {
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return most;
}

/// Returns how many mappings this process has.
std::uint64_t mappings_now() {
  std::ifstream file("/proc/self/maps");
  std::uint64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

/// `count`: of rings, each of which takes one mapping of the process.
Error no_room(const char* step, std::uint32_t count, std::size_t bytes) {
  const int error = errno;
  const std::string what = "cannot map " + std::to_string(bytes >> 20) + " MiB of rings";
  const std::uint64_t most = mappings_at_most();
  // The kernel refuses a mapping more by the same error as a lack of memory.
  constexpr std::uint64_t kClose = 8;
  if (error == ENOMEM && most != 0 && mappings_now() + kClose >= most) {
    return environment_error(what,
                             "each of " + std::to_string(count) + " rings takes a mapping, and a process may have " +
                                 std::to_string(most) + " (vm.max_map_count)",
                             "ask for fewer connections or pipelines, or run `sudo sysctl -w vm.max_map_count=" +
                                 std::to_string(most + 2 * std::uint64_t{count}) + "`");
  }
  return environment_error(what, std::string(step) + ": " + std::generic_category().message(error),
                           "ask for fewer connections or smaller rings");
}

/// Who takes more than there is does not get an error but is killed, or another program is.
Result<void> check_memory(std::size_t bytes) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "MemAvailable:";
    if (!line.starts_with(kName)) continue;
    const std::uint64_t available = std::strtoull(line.c_str() + kName.size(), nullptr, 10) << 10;
    if (bytes <= available) return {};
    return environment_error("cannot take " + std::to_string(bytes >> 20) + " MiB for rings at the start",
                             "the machine has " + std::to_string(available >> 20) + " MiB left",
                             "ask for fewer connections or smaller rings, or have pages taken as bytes come");
  }
  return {};
}

}  // namespace

Result<RingMemory> RingMemory::create(std::uint32_t count, std::size_t bytes, bool populate) {
  const std::size_t all = bytes * count;
  if (populate) {
    WARPLINE_CHECK(check_memory(all));
  }
  void* const begin = mmap(nullptr, 2 * all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return no_room("mmap", count, all);
  RingMemory memory(static_cast<std::uint8_t*>(begin), count, bytes);
  const int file = memfd_create("warpline-rings", MFD_CLOEXEC);
  if (file < 0) return no_room("memfd_create", count, all);
  bool mapped = ftruncate(file, static_cast<off_t>(all)) == 0;
  for (std::uint32_t i = 0; mapped && i < 2 * count; ++i) {
    mapped = mmap(memory.begin_ + i * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                  static_cast<off_t>(i / 2 * bytes)) != MAP_FAILED;
  }
  const int error = errno;
  close(file);
  errno = error;
  if (!mapped) return no_room("mmap", count, all);
  if (populate && madvise(memory.begin_, 2 * all, MADV_POPULATE_WRITE) != 0) return no_room("madvise", count, all);
  return memory;
}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), count_(other.count_), bytes_(other.bytes_) {}

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(count_, other.count_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

RingMemory::~RingMemory() {
  if (begin_ != nullptr) munmap(begin_, 2 * bytes_ * count_);
}

}  // namespace warpline::stream
