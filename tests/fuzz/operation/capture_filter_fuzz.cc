// SPDX-License-Identifier: Apache-2.0
// Any bytes as an expression of libpcap, up to the first NUL, and as a frame behind it: a filter or an error that says
// why, and a filter reads no byte beyond those that were captured.
#include <netdb.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "warpline/capture/packet_filter.h"

// Names of hosts in an expression are not asked for.
extern "C" int getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) { return EAI_NONAME; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* const end = std::find(data, data + size, 0);
  const auto filter = warpline::capture::PacketFilter::compile(std::string(data, end));
  if (!filter.ok()) {
    const warpline::Error& error = filter.error();
    if (error.kind != warpline::ErrorKind::usage || error.why.empty() || error.fix.empty()) std::abort();
    return 0;
  }
  if (filter->matches_all() != (end == data)) std::abort();
  const std::vector<std::uint8_t> frame(end, data + size);  // of just so many bytes
  const auto captured = static_cast<std::uint32_t>(frame.size());
  for (const std::uint32_t length : {captured, captured + 1, 9000U}) {
    const bool matches = filter->matches(frame.data(), std::max(length, captured), captured);
    if (filter->matches_all() && !matches) std::abort();
  }
  return 0;
}
