// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/address.h"

namespace warpline::packet {

/// What a Responder notices beside what it answers, for the thread that sends announcements. Any thread.
class AddressWatch {
 public:
  /// Versions of multicast listener discovery, as bits.
  enum Query : std::uint8_t { kNoQuery = 0, kQueryV1 = 1, kQueryV2 = 2 };

  /// Another station, whose MAC address is at `mac`, says that it has the address.
  void note_conflict(const std::uint8_t* mac) {
    std::uint64_t bits = 0;
    for (int i = 0; i < 6; ++i) bits = bits << 8 | mac[i];
    other_.store(bits, std::memory_order_relaxed);
    conflicts_.fetch_add(1, std::memory_order_release);
  }
  /// A router asked for the address's group, and the frame is not turned into the answer.
  void note_query(Query version) { queries_.fetch_or(version, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t conflicts() const { return conflicts_.load(std::memory_order_acquire); }
  /// The station of the last conflict.
  [[nodiscard]] MacAddress other() const {
    const std::uint64_t bits = other_.load(std::memory_order_relaxed);
    MacAddress mac;
    for (unsigned i = 0; i < 6; ++i) mac.bytes[i] = static_cast<std::uint8_t>(bits >> (40 - 8 * i));
    return mac;
  }
  /// Returns the versions of the queries since the last call.
  [[nodiscard]] std::uint8_t take_queries() {
    return queries_.load(std::memory_order_relaxed) == kNoQuery
               ? std::uint8_t{kNoQuery}
               : queries_.exchange(kNoQuery, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> conflicts_{0};
  std::atomic<std::uint64_t> other_{0};
  std::atomic<std::uint8_t> queries_{kNoQuery};
};

using AnnouncedFrame = std::vector<std::uint8_t>;

/// Returns the ARP announcement of `own` (RFC 5227, 2.3), by which a host that begins to use it says so, and by which
/// it defends it (2.4), padded to Ethernet's shortest frame, 60 bytes.
[[nodiscard]] AnnouncedFrame arp_announcement(const MacAddress& mac, const Ipv4Address& own);

/// Why a group is reported.
enum class ReportReason : std::uint8_t { joined, query_v2, query_v1 };

/// Returns the reports of the solicited-node groups of the IPv6 addresses among `addresses`, each once: that they have
/// been joined (RFC 3810, 6.1; RFC 4862, 5.4.2), or in answer to a query of all groups (RFC 3810, 6.2; RFC 2710, 4).
[[nodiscard]] std::vector<AnnouncedFrame> group_reports(const MacAddress& mac,
                                                        std::span<const InterfaceAddress> addresses,
                                                        ReportReason reason);

}  // namespace warpline::packet
