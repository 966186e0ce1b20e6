// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/link_interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>

#include <rte_interrupts.h>

#include "vnic/device/control.h"
#include "vnic/device/device.h"
#include "vnic/device/registry.h"
#include "vnic/wire/link.h"

namespace warpline::vnic {
namespace {

/// Held while a callback runs: a port goes away before or after. A callback may close its port.
std::recursive_mutex serving;

void serve(void* /*argument*/) {
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t got = read(link_event.load(std::memory_order_acquire), &times, sizeof times);
  const std::scoped_lock held(serving);
  while (Device* const device = find_moved_link()) {
    notify_link(*device);
    if (device->egress.faults().was_reset()) notify_reset(*device);
  }
}

int register_event(int fd) {
  rte_intr_handle* const handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (handle == nullptr) return -ENOMEM;
  int status = -EINVAL;
  if (rte_intr_fd_set(handle, fd) == 0 && rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0) {
    status = rte_intr_callback_register(handle, serve, nullptr);
  }
  rte_intr_instance_free(handle);  // EAL has taken a copy
  return status;
}

}  // namespace

int open_link_interrupt() {
  const auto lock = lock_registry();
  if (link_event.load(std::memory_order_relaxed) >= 0) return 0;
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return -errno;
  link_event.store(fd, std::memory_order_release);
  const int status = register_event(fd);
  if (status == 0) return 0;
  link_event.store(-1, std::memory_order_relaxed);
  close(fd);
  return status;
}

void finish_link_interrupts() { const std::scoped_lock held(serving); }

}  // namespace warpline::vnic
