// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "warpline/inspect/pattern_set.h"

namespace warpline::bench {

/// Streams of equal length in host memory, one behind the other.
struct HostStreams {
  const std::uint8_t* bytes = nullptr;
  std::uint32_t count = 0;
  std::uint64_t length = 0;  ///< of each
};

/// What the cores of a host do with streams, each core with those that fall to it. Threads wait between calls.
class HostCores {
 public:
  explicit HostCores(unsigned cores);
  ~HostCores();

  /// OpenSSL's SHA-256 of each stream, 32 bytes one behind the other.
  std::vector<std::uint8_t> digests(const HostStreams& streams);
  /// How often each pattern is in the streams, by scan() of the table that the GPU has.
  std::vector<std::uint64_t> scan(const HostStreams& streams, const inspect::PatternSet& set);
#if defined(WARPLINE_HYPERSCAN)
  static constexpr bool kHasHyperscan = true;
#else
  static constexpr bool kHasHyperscan = false;
#endif
  /// The same by Hyperscan. Nothing where it is not there.
  std::vector<std::uint64_t> hyperscan(const HostStreams& streams, const std::vector<std::string>& patterns);

 private:
  struct Team;
  std::unique_ptr<Team> team_;
};

}  // namespace warpline::bench
