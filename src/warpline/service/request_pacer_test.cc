// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/request_pacer.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline::service {
namespace {

WARPLINE_PROPERTY(RequestPacer, IsNeverMoreThanHalfANanosecondOffItsRate, ()) {
  const double rate = *rc::gen::inRange(1, 20'000'000);
  const Nanos start{*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)};
  RequestPacer pacer(rate);
  pacer.start(start);
  for (int i = 0; i < 20; ++i) {
    const auto request = *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000);
    const double ideal = static_cast<double>(request) * 1e9 / rate;
    const Nanos due = pacer.time_of(request);
    RC_ASSERT(std::abs(static_cast<double>(due.value - start.value) - ideal) <= 0.5 + ideal * 1e-12);
    RC_ASSERT(pacer.due(request, due));
    RC_ASSERT(!pacer.due(request, Nanos{due.value - 1}));
  }
}

TEST(RequestPacer, NothingIsDueBeforeTheStartOrWithoutARate) {
  EXPECT_FALSE(RequestPacer(1000).due(0, Nanos{5}));
  RequestPacer none;
  none.start(Nanos{0});
  EXPECT_FALSE(none.paces());
  EXPECT_FALSE(none.due(0, Nanos{1'000'000'000}));
}

}  // namespace
}  // namespace warpline::service
