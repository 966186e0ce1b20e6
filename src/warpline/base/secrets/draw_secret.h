// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "warpline/base/result.h"

namespace warpline {

/// Fills `secret`, 256 bytes at most, from the kernel's cryptographic random numbers. Environment error: it gives none.
[[nodiscard]] Result<void> draw_secret(std::span<std::uint8_t> secret);

}  // namespace warpline
