// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <rte_mempool.h>

#include "warpline/base/address.h"
#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/packet/announcement.h"
#include "warpline/port/port.h"
#include "warpline/port/port_queue.h"

namespace warpline::port {

/// Says to a port's link that it has its addresses, and defends them:
/// - at the start an ARP announcement of each IPv4 address, and again after 2 s (RFC 5227, 2.3), and reports of the
///   IPv6 addresses' groups, and again within 1 s (RFC 3810, 6.1, 9.1 and 9.11);
/// - where another station claims an IPv4 address, an ARP announcement, at most every 10 s (RFC 5227, 2.4 (c));
/// - reports in answer to listener queries that the port's responders only note.
/// The control thread decides, and writes the frames; the worker that has a transmit queue of the port sends them. What
/// the device does not take is lost. A port that writes files sends none.
class Announcer {
 public:
  /// `addresses` are those of the port's settings; frames are sent in buffers of `pool`, the queue's own, in memory
  /// that the CPU writes, with the VLAN control word `vlan` (0: no tag). The port and the pool outlive its use.
  /// `mac` is the port's; all zero: it has none, and nothing is sent.
  Announcer(const Port& port, const MacAddress& mac, std::span<const InterfaceAddress> addresses, rte_mempool& pool,
            std::uint16_t vlan = 0);
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  // Control thread. `now` is of any clock, the same for all calls.

  /// Sends the first announcements by the first transmit queue, before a worker has it. Returns the number of frames.
  std::uint32_t begin(Nanos now);
  /// Several times per second: has the frames sent that are due. Returns a line for each address that another station
  /// has been found to claim; once.
  [[nodiscard]] std::vector<std::string> tend(Nanos now);

  // The worker.

  /// Whether there is something to send.
  [[nodiscard]] bool due() const { return written_.load(std::memory_order_acquire) != read_; }
  /// Sends it by `by`, a transmit queue of the port. Returns the number of frames.
  std::uint32_t send(PortQueue by);

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kSlotBytes = 128;
  struct Slot {
    std::uint16_t length = 0;
    std::array<std::uint8_t, kSlotBytes> bytes;
  };
  struct Planned {
    Nanos due;
    packet::AnnouncedFrame frame;
  };
  struct Known {
    std::uint64_t conflicts = 0;
    Nanos defended{0};
  };

  void plan(Nanos due, packet::AnnouncedFrame frame);
  void plan_reports(Nanos due, packet::ReportReason reason);
  void defend(std::size_t address, Nanos now, std::vector<std::string>& lines);
  void write_due(Nanos now);

  const Port& port_;
  const std::vector<InterfaceAddress> addresses_;
  rte_mempool& pool_;
  const std::uint16_t vlan_;
  const MacAddress mac_;
  const bool silent_;
  Random random_;
  std::deque<Planned> planned_;
  std::vector<Known> known_;  ///< by address
  std::array<Slot, kSlots> slots_;
  alignas(64) std::atomic<std::uint32_t> written_{0};  ///< by the control thread
  alignas(64) std::atomic<std::uint32_t> taken_{0};    ///< by the worker
  std::uint32_t read_ = 0;                             ///< the worker's
};

}  // namespace warpline::port
