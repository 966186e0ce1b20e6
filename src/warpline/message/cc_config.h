// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"

namespace warpline::message {

/// The congestion controllers.
enum class CcKind : std::uint8_t {
  swift,   ///< by delay, towards a target (CcConfig::Swift)
  timely,  ///< by the gradient of delay (CcConfig::Timely)
  dctcp,   ///< by marks of congestion (CcConfig::Dctcp)
  none,    ///< a constant window
};
constexpr auto names_of(CcKind) { return enum_names<CcKind>({"swift", "timely", "dctcp", "none"}); }

/// Parameters of all controllers; copied into the controllers that they concern. Nonsense is clamped, never an error.
struct CcConfig {
  CcKind kind = CcKind::swift;              ///< which controller an endpoint's sessions have
  std::uint32_t mtu = 1472;                 ///< bytes that a full packet counts as in flight
  double initial_window_bytes = 16 * 1472;  ///< window of a new session
  double max_window_bytes = 4 << 20;        ///< no window grows beyond it; one mtu at least

  /// Swift (Kumar et al., SIGCOMM 2020), whose sections are named here.
  struct Swift {
    Nanos base_target{50'000};         ///< round trip without the peer's delay, for a flow with a large window
    Nanos scaling_range{50'000};       ///< added to the target of a flow with the smallest window (section 3.5)
    double scaling_min_packets = 0.1;  ///< windows between which the range is spread
    double scaling_max_packets = 100;  ///< a larger window has no range added
    Nanos endpoint_target{500'000};    ///< of the peer's delay (section 3.3)
    double increment_packets = 0.5;    ///< a round trip
    double decrease = 0.8;             ///< beta: of the excess over the target
    double max_decrease = 0.5;         ///< of the window, once a round trip
    double min_window_packets = 0.02;  ///< no window shrinks below it; less than one packet is paced
    double tolerated_loss = 0.05;      ///< share of packets whose loss is left to what the delay says; 0: none
  } swift;                             ///< read by `swift` alone

  /// TIMELY (Mittal et al., SIGCOMM 2015).
  struct Timely {
    double min_rate = 15e6;    ///< bytes a second
    double max_rate = 12.5e9;  ///< bytes a second: the link's; at it nothing is paced
    double increment = 5e6;    ///< bytes a second, a round trip
    double alpha = 0.46;       ///< weight of a new difference of round trips
    double beta = 0.26;        ///< multiplicative decrease
    Nanos low{50'000};         ///< round trips below it always raise the rate
    Nanos high{1'000'000};     ///< round trips above it always lower the rate
  } timely;                    ///< read by `timely` alone

  /// DCTCP (RFC 8257).
  struct Dctcp {
    double gain = 1.0 / 16;  ///< weight of a new share of marked bytes (RFC 8257, section 4.2)
  } dctcp;                   ///< read by `dctcp` alone
};

}  // namespace warpline::message
