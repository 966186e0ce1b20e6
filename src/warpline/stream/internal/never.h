// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "warpline/base/units.h"

namespace warpline::stream {

/// When something is due that is not due at all: later than any time.
inline constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};

}  // namespace warpline::stream
