// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// How the device moves payload that lies where the CPU cannot write, as in a GPU: a program registers a copy engine,
// which stands for the NIC's own. C linkage, so that a program that loads the driver as a plugin finds it with dlsym.
extern "C" {

/// `length` bytes, at least one, between one of the port's payload regions (below) and a buffer of the program's, which
/// is where the descriptor said: payload address of an mbuf in memory that was mapped for the port.
struct rte_net_vnic_copy {
  void* to;
  const void* from;
  std::size_t length;
};

/// Most copies of a batch, and most batches of a queue under way.
enum { RTE_NET_VNIC_MOST_COPIES = 256, RTE_NET_VNIC_MOST_BATCHES = 64 };

/// What a queue's copies do: RX writes to the program's buffers, TX reads them.
enum rte_net_vnic_direction { RTE_NET_VNIC_RX, RTE_NET_VNIC_TX };

/// From `landed`: the engine has failed, nothing that has not landed ever will. Frames under way are lost and counted
/// (rx_copy_failed, tx_copy_failed), their mbufs are accounted for; the queue moves nothing until it is started again.
constexpr std::uint64_t RTE_NET_VNIC_COPIES_LOST = ~std::uint64_t{0};

/// A copy engine. Each queue has a lane of its own: calls on one come one at a time, from whoever runs the device for
/// that queue (with engine=inline mostly the lcore that polls it), calls on different ones at the same time.
///
/// Frames wait for their own batch only, and several batches are under way at a time: a received frame's descriptors
/// are written back, a sent frame goes on to the wire and its descriptors are completed, when its batch has landed.
struct rte_net_vnic_copy_engine {
  void* context;
  /// When a queue starts: its lane, or null, with which the start fails (-ENOMEM). Control thread.
  void* (*open)(void* context, rte_net_vnic_direction direction, std::uint16_t queue);
  /// When it has stopped and nothing is under way any more, or was lost. Control thread.
  void (*close)(void* lane);
  /// Begins the lane's next batch, 1 to RTE_NET_VNIC_MOST_COPIES copies in any order; `copies` may be read until it
  /// returns. 0; -EAGAIN: nothing was begun, it is asked again; any other value is a failure, as in `landed`. Never
  /// blocks.
  int (*submit)(void* lane, const rte_net_vnic_copy* copies, std::uint32_t count);
  /// How many of the lane's batches have landed, counted from its opening, in the order of their submission: their
  /// bytes are where they belong, for the CPU too. Asked whenever the device runs while something is under way; never
  /// blocks.
  std::uint64_t (*landed)(void* lane);
};

/// Registers a copy engine for a net_vnic port, null for the CPU's own copies; what it points to may go when this
/// returns. While the port is stopped. 0, -ENODEV when it is none, -EBUSY when it is started, -EINVAL when a function
/// is missing, -ENOMEM.
int rte_net_vnic_set_copy_engine(std::uint16_t port_id, const rte_net_vnic_copy_engine* engine);

/// Calls `found` with each region of memory that copies read or write on the device's side: whole pages of ordinary
/// memory, for example to be registered with CUDA. Complete once the port is configured and has a copy engine; they
/// stay until the port is configured again, gets another copy engine, or is closed. The number of regions, or -ENODEV.
int rte_net_vnic_payload_regions(std::uint16_t port_id, void (*found)(void* context, void* begin, std::size_t length),
                                 void* context);

}  // extern "C"
