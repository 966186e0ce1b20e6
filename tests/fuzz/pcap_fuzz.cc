// SPDX-License-Identifier: Apache-2.0
// Any bytes as a capture file: the check answers with facts that fit the input, or with an error that says why; whoever
// reads it finds the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "warpline/runtime/pcap_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;  // fmemopen makes no file of nothing
  std::FILE* const file = fmemopen(const_cast<std::uint8_t*>(data), size, "rb");
  if (file == nullptr) return 0;
  const auto facts = warpline::runtime::check_pcap(file, "fuzz");
  if (facts.ok()) {
    if (facts->packets == 0 || facts->bytes > size || facts->longest > facts->bytes) std::abort();
  } else {
    const warpline::Error& error = facts.error();
    if (error.kind != warpline::ErrorKind::usage || error.why.empty() || error.fix.empty()) std::abort();
  }
  std::FILE* const again = fmemopen(const_cast<std::uint8_t*>(data), size, "rb");
  if (again == nullptr) return 0;
  const auto packets = warpline::runtime::read_pcap(again, "fuzz");
  if (packets.ok() != facts.ok()) std::abort();
  if (packets.ok() && (packets->bytes.size() != facts->bytes || packets->offsets.size() != facts->packets + 1))
    std::abort();
  return 0;
}
