// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "copies/copy_case.h"
#include "warpline/base/result.h"

namespace warpline::copies {

/// CopySamples is what came of one case: for each round the median time of its runs.
struct CopySamples {
  CopyCase copies;
  std::vector<double> nanos;  ///< of all copies of the case together
  std::string failure;        ///< why it was not timed on; empty: it was
  int code = 0;               ///< exit code of that; 0: only this way of copying is missing here
};

/// MemcpyTable is what `bench memcpy` makes.
struct MemcpyTable {
  std::vector<CopySamples> by_count;  ///< the same bytes in fewer and fewer copies
  std::vector<CopySamples> by_size;   ///< one copy
  std::uint16_t rounds = 0;
  std::vector<std::string> notes;

  /// {name, title, rounds, source, by_count [..], by_size [..], notes}; an element is {size, count, columns {KIND,
  /// DIRECTION: {us, ns_per_copy, gb_per_s}}, published_ms}.
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  [[nodiscard]] int exit_code() const;
};

/// TimeCopies times the runs of a case, as CopyRig does.
using TimeCopies = std::function<Result<std::vector<double>>(const CopyCase& copies, std::size_t runs)>;

/// Times every case once a round, all of them in a random order that `seed` decides, until done or `stop` is set. A
/// case that fails is not timed again.
[[nodiscard]] MemcpyTable run_memcpy_table(bool with_gpu, std::uint16_t rounds, std::uint64_t seed,
                                           const TimeCopies& time, const std::atomic<bool>& stop);

}  // namespace warpline::copies
