// SPDX-License-Identifier: Apache-2.0
#include "copies/copy_case.h"

namespace warpline::copies {
namespace {

/// Every way to copy so much in so many pieces. One piece has no use for several streams.
void add_kinds(std::vector<CopyCase>& cases, std::size_t size, std::size_t count, bool with_gpu) {
  cases.push_back({CopyKind::host_memcpy, CopyDirection::to_gpu, size, count});
  if (!with_gpu) return;
  for (const CopyDirection direction : {CopyDirection::to_gpu, CopyDirection::from_gpu}) {
    for (std::size_t kind = 1; kind < kEnumNames<CopyKind>.size(); ++kind) {
      const auto copy_kind = static_cast<CopyKind>(kind);
      if (copy_kind == CopyKind::streams && count == 1) continue;
      cases.push_back({copy_kind, direction, size, count});
    }
  }
}

}  // namespace

std::vector<CopyCase> cases_by_count(bool with_gpu) {
  std::vector<CopyCase> cases;
  for (std::size_t count = kSameBytes / kSmallestCopy; count != 0; count /= 8) {
    add_kinds(cases, kSameBytes / count, count, with_gpu);
  }
  return cases;
}

std::vector<CopyCase> cases_by_size(bool with_gpu) {
  std::vector<CopyCase> cases;
  for (std::size_t size = kSmallestCopy; size <= kLargestCopy; size *= 4) add_kinds(cases, size, 1, with_gpu);
  return cases;
}

}  // namespace warpline::copies
