// SPDX-License-Identifier: Apache-2.0
// Any bytes as the memory of a ring that another process writes to: whatever lies in it, what is written stays within
// the memory and the file, and no more packets are taken than there are slots at a time.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "warpline/capture/capture_writer.h"

namespace capture = warpline::capture;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr capture::RingShape kShape{4, 64};
  static const capture::CaptureRings rings = *capture::CaptureRings::make(1, kShape);
  static const std::string file = "/tmp/warpline_fuzz_" + std::to_string(rings.descriptor()) + ".pcapng";
  auto* const memory = static_cast<std::uint8_t*>(
      mmap(nullptr, kShape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, rings.descriptor(), 0));
  std::fill_n(memory, kShape.bytes(), std::uint8_t{0});
  std::copy_n(data, std::min(size, kShape.bytes()), memory);
  auto writer = capture::CaptureWriter::open({.file = file, .snaplen = kShape.snaplen}, {{0, "a"}, {3, "b"}}, "fuzz");
  if (!writer) std::abort();
  writer->take_from(rings);
  constexpr std::size_t kMost = 16;
  if (writer->write_some(kMost) > kMost || writer->written() > kMost) std::abort();
  munmap(memory, kShape.bytes());
  return 0;
}
