// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/parts/fragment_window.h"

#include <gtest/gtest.h>

#include <set>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::message {
namespace {

WARPLINE_PROPERTY(FragmentWindow, is_a_set, ()) {
  // One number of rapidcheck's a case: thousands of them take longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  };
  FragmentWindow window;
  std::set<std::uint32_t> there;
  std::uint32_t base = 0;
  const auto spread = *rc::gen::element(2, 50, 1200);
  for (int step = 0; step < 1000; ++step) {
    const std::uint32_t fragment = base + static_cast<std::uint32_t>(between(0, spread));
    const bool beyond = fragment - base >= FragmentWindow::kSpan;
    RC_ASSERT(window.has(fragment) == (there.count(fragment) != 0));
    const auto answer = window.add(fragment);
    if (beyond) {
      RC_ASSERT(answer == FragmentWindow::Answer::beyond);
      continue;
    }
    const bool fresh = there.insert(fragment).second;
    RC_ASSERT(answer == (fresh ? FragmentWindow::Answer::fresh : FragmentWindow::Answer::duplicate));
    while (there.count(base) != 0) ++base;
    RC_ASSERT(window.base() == base);
    RC_ASSERT(window.any());
    if (base > 0) RC_ASSERT(window.add(base - 1) == FragmentWindow::Answer::duplicate);
  }
}

}  // namespace
}  // namespace warpline::message
