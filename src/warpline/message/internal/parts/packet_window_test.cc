// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/parts/packet_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::message {
namespace {

using Answer = PacketWindow::Answer;

/// What a window must do, by a set.
struct Model {
  std::set<std::uint64_t> arrived;
  std::uint64_t base = 0;

  [[nodiscard]] Answer ask(std::uint64_t number, std::uint64_t floor) const {
    if (number < base) return Answer::stale;
    if (number - std::max(base, floor) >= PacketWindow::kSpan) return Answer::beyond;
    return arrived.count(number) != 0 ? Answer::duplicate : Answer::fresh;
  }
  void take(std::uint64_t number, std::uint64_t floor) {
    arrived.insert(number);
    base = std::max(base, floor);
    while (arrived.count(base) != 0) ++base;
  }
  [[nodiscard]] bool gap() const { return !arrived.empty() && *arrived.rbegin() >= base; }
};

WARPLINE_PROPERTY(PacketWindow, is_a_set_with_a_floor, ()) {
  // One number of rapidcheck's a case: thousands of them take longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  };
  PacketWindow window;
  Model model;
  std::uint64_t next = 0;
  const auto jump = *rc::gen::element(1, 3, 70, 2000);
  for (int step = 0; step < 400; ++step) {
    const auto kind = between(0, 10);
    std::uint64_t number = next;
    if (kind < 4) {
      number = next + static_cast<std::uint64_t>(between(0, jump));
    } else if (kind < 8) {
      const auto back = static_cast<std::uint64_t>(between(0, jump));
      number = next > back ? next - back : 0;
    }
    const auto reach = static_cast<std::uint64_t>(between(0, 1100));
    const std::uint64_t floor = number > reach ? number - reach : 0;
    const Answer answer = window.ask(number, floor);
    RC_ASSERT(answer == model.ask(number, floor));
    if (answer != Answer::fresh) continue;
    window.take(number, floor);
    model.take(number, floor);
    next = std::max(next, number + 1);
    RC_ASSERT(window.base() == model.base);
    RC_ASSERT(window.gap() == model.gap());
    RC_ASSERT(window.word_count() <= 16U);
    std::set<std::uint64_t> told;
    for (std::uint32_t w = 0; w < window.word_count(); ++w) {
      for (unsigned bit = 0; bit < 64; ++bit) {
        if ((window.word(w) >> bit & 1) != 0) told.insert((window.base() / 64 + w) * 64 + bit);
      }
    }
    const std::set<std::uint64_t> above(model.arrived.lower_bound(model.base), model.arrived.end());
    RC_ASSERT(told == above);
  }
}

}  // namespace
}  // namespace warpline::message
