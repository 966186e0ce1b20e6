// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpline/base/verdict.h"

namespace warpline {

/// A frame that must be dropped, with the reason: what parse() says, or else verify_checksums().
struct MalformedFrame {
  std::string name;  ///< unique; words joined by underscores
  std::vector<std::uint8_t> bytes;
  Verdict verdict;
};

/// One or more for every reason that the parser and the checksums have, each with one thing wrong. All fit into 1514
/// bytes, none is empty.
[[nodiscard]] std::vector<MalformedFrame> malformed_frames();

}  // namespace warpline
