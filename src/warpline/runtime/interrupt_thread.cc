// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/interrupt_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <semaphore>

#include <rte_interrupts.h>

namespace warpline::runtime {
namespace {

constexpr std::chrono::seconds kParkPatience{1};

std::binary_semaphore& parked() {
  static std::binary_semaphore semaphore{0};
  return semaphore;
}

/// Runs on the interrupt thread, which calls it without holding a lock, and keeps it.
void park(void* /*unused*/) {
  parked().release();
  for (;;) pause();
}

}  // namespace

bool park_interrupt_thread() {
  // An event that has already happened, and a handle outside the memory that the clean-up unmaps. EAL copies it.
  const int event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  rte_intr_handle* const handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  const bool registered = event >= 0 && handle != nullptr && rte_intr_fd_set(handle, event) == 0 &&
                          rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
                          rte_intr_callback_register(handle, park, nullptr) == 0;
  rte_intr_instance_free(handle);
  return registered && parked().try_acquire_for(kParkPatience);
}

}  // namespace warpline::runtime
