// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/secrets/draw_secret.h"

#include <sys/random.h>
#include <sys/types.h>

namespace warpline {

Result<void> draw_secret(std::span<std::uint8_t> secret) {
  if (::getrandom(secret.data(), secret.size(), 0) == static_cast<ssize_t>(secret.size())) return {};
  return environment_error("cannot make a secret", "the kernel gives no random numbers", "check `man getrandom`");
}

}  // namespace warpline
