// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/cc/congestion_control.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::message {
namespace {

constexpr CcKind kKinds[] = {CcKind::swift, CcKind::timely, CcKind::dctcp, CcKind::none};

/// What a peer, a clock or a broken caller may come up with: extremes among plausible values.
rc::Gen<std::int64_t> any_time() {
  return rc::gen::oneOf(rc::gen::element<std::int64_t>(0, 1, -1, std::numeric_limits<std::int64_t>::max(),
                                                       std::numeric_limits<std::int64_t>::min()),
                        rc::gen::inRange<std::int64_t>(0, 200'000), rc::gen::inRange<std::int64_t>(0, 1LL << 50));
}

rc::Gen<std::uint32_t> any_count() {
  return rc::gen::oneOf(rc::gen::element<std::uint32_t>(0, 1, std::numeric_limits<std::uint32_t>::max()),
                        rc::gen::inRange<std::uint32_t>(0, 100'000));
}

rc::Gen<double> any_parameter() {
  return rc::gen::oneOf(
      rc::gen::element(0.0, -1.0, 1e-30, 0.5, 1.0, 1e30, std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()),
      rc::gen::map(rc::gen::inRange(0, 1'000'000), [](int value) { return value / 1000.0; }));
}

CcConfig any_config(CcKind kind) {
  CcConfig config;
  config.kind = kind;
  config.mtu = *any_count();
  for (double* parameter : {&config.initial_window_bytes, &config.max_window_bytes, &config.swift.scaling_min_packets,
                            &config.swift.scaling_max_packets, &config.swift.increment_packets, &config.swift.decrease,
                            &config.swift.max_decrease, &config.swift.min_window_packets, &config.swift.tolerated_loss,
                            &config.timely.min_rate, &config.timely.max_rate, &config.timely.increment,
                            &config.timely.alpha, &config.timely.beta, &config.dctcp.gain}) {
    *parameter = *any_parameter();
  }
  for (Nanos* time : {&config.swift.base_target, &config.swift.scaling_range, &config.swift.endpoint_target,
                      &config.timely.low, &config.timely.high}) {
    time->value = *any_time();
  }
  return config;
}

void expect_bounded(const CcOutput& output, double max_window) {
  RC_ASSERT(std::isfinite(output.window_bytes));
  RC_ASSERT(output.window_bytes > 0);
  RC_ASSERT(output.window_bytes <= max_window);
  RC_ASSERT(output.pacing_gap >= Nanos{0});
  RC_ASSERT(output.pacing_gap <= kMaxPacingGap);
}

void apply_anything(CongestionControl& control, double max_window) {
  const int steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    const Nanos now{*any_time()};
    if (*rc::gen::inRange(0, 4) == 0) {
      expect_bounded(control.on_loss(now, *rc::gen::arbitrary<bool>()), max_window);
    } else {
      expect_bounded(control.on_ack({.now = now,
                                     .rtt = Nanos{*any_time()},
                                     .remote_delay = Nanos{*any_time()},
                                     .acked_bytes = *any_count(),
                                     .acked_packets = *any_count(),
                                     .ecn_marked_packets = *any_count(),
                                     .in_flight_bytes = *any_count()}),
                     max_window);
    }
  }
}

WARPLINE_PROPERTY(CongestionControl, StaysWithinItsBoundsWhateverHappens, ()) {
  for (const CcKind kind : kKinds) {
    CcConfig config;
    config.kind = kind;
    CongestionControl control(config);
    expect_bounded(control.output(), config.max_window_bytes * (1 + 1e-6));
    apply_anything(control, config.max_window_bytes * (1 + 1e-6));
  }
}

WARPLINE_PROPERTY(CongestionControl, AndWithAnyParameters, ()) {
  constexpr double kLargest = (1 << 30) * (1 + 1e-6);
  for (const CcKind kind : kKinds) {
    CongestionControl control(any_config(kind));
    expect_bounded(control.output(), kLargest);
    apply_anything(control, kLargest);
  }
}

WARPLINE_PROPERTY(CongestionControl, RecoversFromAnything, ()) {
  for (const CcKind kind : kKinds) {
    CcConfig config;
    config.kind = kind;
    CongestionControl control(config);
    apply_anything(control, config.max_window_bytes * (1 + 1e-6));
    // An idle network for three seconds: at least one packet a round trip again.
    std::int64_t now = 0;
    for (int i = 0; i < 30'000; ++i) {
      control.on_ack({.now = Nanos{now += 100'000},
                      .rtt = Nanos{20'000},
                      .remote_delay = Nanos{0},
                      .acked_bytes = config.mtu,
                      .acked_packets = 1,
                      .ecn_marked_packets = 0,
                      .in_flight_bytes = 1 << 30});
    }
    RC_ASSERT(control.output().window_bytes >= config.mtu);
    RC_ASSERT(control.output().pacing_gap <= Nanos{20'000});
  }
}

TEST(CongestionControl, NoneIsAConstantWindow) {
  CcConfig config;
  config.kind = CcKind::none;
  config.max_window_bytes = 32 * 1472;
  CongestionControl control(config);
  control.on_loss(Nanos{1}, true);
  EXPECT_EQ(control.output().window_bytes, 32 * 1472);
  EXPECT_EQ(control.output().pacing_gap, Nanos{0});
}

}  // namespace
}  // namespace warpline::message
