// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// How the device moves payload: a program whose payload lies where the CPU cannot write registers its own operations.
// C linkage, so that a program that loads the driver as a plugin finds them with dlsym.
extern "C" {

struct rte_net_vnic_copy_ops {
  /// Payload from the program's buffer into the device. Bytes must have arrived when it returns, or when `poll` says
  /// so.
  void (*copy_in)(void* context, void* device, const void* buffer, std::size_t length);
  /// Payload from the device into the program's buffer; descriptors are written back after the next `poll` that
  /// returns true.
  void (*copy_out)(void* context, void* buffer, const void* device, std::size_t length);
  /// True when all copies begun before are done. Null: they are when they return.
  bool (*poll)(void* context);
  void* context;
};

/// Registers operations for a net_vnic port, before it is started. 0, -ENODEV when it is none, -EBUSY when it is
/// started.
int rte_net_vnic_set_copy_ops(std::uint16_t port_id, const rte_net_vnic_copy_ops* ops);

}  // extern "C"
