// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vnic/common/limits.h"

namespace warpline::vnic {

/// What a driver does with ring sizes that lie within the limits it tells.
enum class RingSizes : std::uint8_t {
  exact,              ///< takes them
  powers_of_two,      ///< refuses others
  up_to_power,        ///< makes others the next power of two
  down_to_multiple,   ///< makes others the multiple of kRoundedTo below
  as_the_device_has,  ///< takes no more than the device has descriptors, and says nothing
};
inline constexpr std::uint16_t kRoundedTo = 32;

enum class FlowRuleTimes : std::uint8_t { any, while_started, never };

enum class Splits : std::uint8_t {
  any,             ///< by length and behind the headers
  by_length,       ///< needs the scatter offload too
  behind_headers,  ///< two segments, of which the first ends with the headers
  none,
};

/// What a driver makes of buffers that an MTU's frames do not fit into, where the scatter offload was not asked for.
enum class LongFrames : std::uint8_t {
  lost,       ///< those that do not fit
  refused,    ///< the queue is not set up
  scattered,  ///< it scatters all the same
};

/// What happens to a frame that the driver is to send in more pieces than the device takes.
enum class TooManyPieces : std::uint8_t {
  dropped,    ///< the burst counts it as taken, nothing leaves
  not_taken,  ///< the burst ends before it, however often it is called
};

/// Calls of ethdev that a driver does not answer.
enum Lack : std::uint32_t {
  kLacksPromiscuous = 1U << 0,   ///< promiscuous and allmulticast
  kLacksAddresses = 1U << 1,     ///< a second address, another one, a list of multicast addresses
  kLacksLinkChange = 1U << 2,    ///< link up and down
  kLacksQueueStop = 1U << 3,     ///< start and stop of single queues, deferred start
  kLacksQueueInfo = 1U << 4,     ///< what a queue was set up to
  kLacksCleanup = 1U << 5,       ///< freeing sent mbufs when asked
  kLacksRxStatus = 1U << 6,      ///< state of receive descriptors, frames that wait
  kLacksTxStatus = 1U << 7,      ///< state of transmit descriptors
  kLacksStats = 1U << 8,         ///< all statistics
  kLacksStatsReset = 1U << 9,    ///< all of them begin anew at zero
  kLacksQueueStats = 1U << 10,   ///< statistics of single queues
  kLacksClock = 1U << 11,        ///< the device's clock
  kLacksPacketTypes = 1U << 12,  ///< choosing packet types
  kLacksRssControl = 1U << 13,   ///< fields, key and table of RSS; the device spreads frames all the same
  kLacksQueueSetup = 1U << 14,   ///< setting a queue up while the port runs
  kLacksMtuChange = 1U << 15,    ///< another MTU while the port runs
  kLacksFieldChange = 1U << 16,  ///< fields and key of RSS once configured
};

/// Descriptors of a ring, as the driver tells them.
struct RingLimits {
  std::uint16_t least = kMinRing;
  std::uint16_t most = kMaxRing;
  std::uint16_t multiple = 1;
  std::uint16_t preferred = 512;
};

/// Bytes of sent payload that the driver reads with the CPU: of the first `bytes` of a frame, or of all of those that
/// are no longer (`whole`). 0: none.
struct PayloadRead {
  std::uint16_t bytes = 0;
  bool whole = false;
  bool single = false;            ///< of frames in one piece only
  std::uint16_t from_queues = 0;  ///< if the port has so many transmit queues or more
  bool can_be_set = false;        ///< txq_inline_max and txqs_inline, and a flag in the mbuf
};

/// The capabilities, limits and manners of one driver, as far as net_vnic can have them: data, which the rooms above
/// read. Where it is from, by fact: docs/net_vnic.md. Nothing here is more than net_vnic's own, which the first is.
struct Persona {
  std::string_view name;

  RingLimits rx_ring;
  RingLimits tx_ring;
  RingSizes ring_sizes = RingSizes::exact;
  std::uint16_t device_ring = 0;     ///< with RingSizes::as_the_device_has
  std::uint16_t rx_free_thresh = 0;  ///< told as default; 0: none is told
  std::uint16_t tx_free_thresh = 0;  ///< likewise
  std::uint16_t tx_rs_thresh = 0;    ///< likewise
  std::uint16_t reports_every = 0;   ///< descriptors, whatever tx_rs_thresh is asked for; 0: as asked
  bool rs_divides_ring = false;      ///< tx_rs_thresh has to
  std::uint16_t pieces_told = 0;     ///< nb_mtu_seg_max
  std::uint16_t pieces_sent = 0;     ///< most pieces of a frame; 0: as many as the ring has
  TooManyPieces too_many_pieces = TooManyPieces::dropped;
  std::uint16_t buffers_received = 0;  ///< most buffers of a frame; longer ones are lost; 0: any
  LongFrames long_frames = LongFrames::lost;
  std::uint16_t rx_queues = kMaxQueues;
  std::uint16_t tx_queues = kMaxQueues;
  bool power_of_two_queues = false;  ///< of receive queues

  std::uint16_t rx_align = 1;         ///< as the device argument
  std::uint16_t rx_buffer_unit = 1;   ///< as the device argument
  std::uint16_t rx_buffer_told = 64;  ///< least bytes of a receive buffer that the driver tells of
  std::uint16_t rx_buffer_least = 0;  ///< and those that it insists on
  std::uint16_t rx_buffer_most = 0;   ///< bytes of a buffer that are used; 0: all
  std::uint32_t link_up_after = 0;    ///< as the device argument

  std::uint16_t least_mtu = 68;
  std::uint16_t most_mtu = kMaxMtu;
  std::uint16_t frame_overhead = kFrameOverhead;  ///< max_rx_pktlen beyond the MTU

  std::uint64_t rx_offloads = 0;  ///< of net_vnic's
  std::uint64_t tx_offloads = 0;
  std::uint64_t rx_queue_offloads = 0;  ///< those that a single queue may have
  std::uint64_t tx_queue_offloads = 0;
  Splits splits = Splits::any;
  std::uint16_t split_segments = kMaxSplit;
  bool split_offsets = true;

  std::uint64_t rss_fields = 0;
  std::uint16_t rss_entries = 0;  ///< of the indirection table, a power of two
  std::uint16_t rss_key_bytes = 40;
  bool rss_key_told = true;
  bool rss_entries_of_queues = false;  ///< four a queue, of rss_entries at most; none before RSS is configured

  FlowRuleTimes flow_rules = FlowRuleTimes::any;
  bool keeps_flow_rules = true;  ///< over a stop

  std::uint32_t lacks = 0;  ///< enum Lack
  PayloadRead reads_sent;   ///< with the CPU
  /// Bytes of a received frame that the driver touches with the CPU.
  std::uint16_t touches_received = 0;
  std::uint64_t touches_with = 0;  ///< if one of these receive offloads is on; 0: always
};

/// Descriptors of a ring that `asked` is within the limits of; 0: the driver refuses it.
[[nodiscard]] std::uint16_t ring_in_force(const Persona& persona, std::uint16_t asked);

/// net_vnic's own, then one a driver.
[[nodiscard]] std::span<const Persona> personas();
/// Null when there is none of that name; the empty name is net_vnic's own.
[[nodiscard]] const Persona* find_persona(std::string_view name);

}  // namespace warpline::vnic
