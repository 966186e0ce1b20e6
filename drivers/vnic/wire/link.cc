// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/link.h"

#include <unistd.h>

#include <cstdint>

namespace warpline::vnic {

void raise_link_interrupt(Link& link) {
  const int fd = link_event.load(std::memory_order_acquire);
  if (fd < 0) return;
  link.moved.store(true, std::memory_order_release);
  constexpr std::uint64_t kOnce = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &kOnce, sizeof kOnce);
}

}  // namespace warpline::vnic
