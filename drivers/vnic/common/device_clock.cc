// SPDX-License-Identifier: Apache-2.0
#include "vnic/common/device_clock.h"

#include "warpline/base/time/clock.h"

namespace warpline::vnic {
namespace {

__extension__ using Wide = unsigned __int128;

struct Clock {
  std::uint64_t first = ticks_now();
  /// Nanoseconds a tick, in units of 2^-32.
  std::uint64_t scale = static_cast<std::uint64_t>(1e9 * 0x1p32 / ticks_per_second());
};

}  // namespace

std::uint64_t device_nanos() {
  static const Clock clock;
  return static_cast<std::uint64_t>(Wide{ticks_now() - clock.first} * clock.scale >> 32);
}

}  // namespace warpline::vnic
