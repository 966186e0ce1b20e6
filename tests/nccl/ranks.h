// SPDX-License-Identifier: Apache-2.0
// What each of the two processes of a test does, in the place of NCCL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warpline::nccl {

/// One process: its number, how it talks with the other beside the plugin, and what the test asks for.
struct RankArguments {
  std::string role;  ///< what to do
  int rank = 0;      ///< 0 or 1
  int peer = -1;     ///< a socket to the other
  int version = 12;  ///< of the interface
  std::uint64_t seed = 1;
  std::string plugin;  ///< the file
};

/// Does it; returns the exit code, 0 if all was as it should be. Says on standard error what was not.
[[nodiscard]] int run_rank(const RankArguments& arguments);

}  // namespace warpline::nccl
