// SPDX-License-Identifier: Apache-2.0
// Facts as the drivers' sources in DPDK 22.11.11 have them; docs/net_vnic.md names the file of each. Where a driver
// takes more than net_vnic has, net_vnic's own limit stands here.
#include <algorithm>
#include <bit>

#include "vnic/common/offloads.h"
#include "vnic/personas/persona.h"

namespace warpline::vnic {
namespace {

constexpr std::uint64_t kL4Checksums = RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
constexpr std::uint64_t kTxL4Checksums = RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
constexpr std::uint64_t kRxUsual = kRxChecksums | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

constexpr std::uint64_t kPortFields = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |
                                      RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
constexpr std::uint64_t kKindFields = kPortFields | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER |
                                      RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER;
constexpr std::uint64_t kAddressFields = RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6;

/// No driver here but mlx5 reads its device's clock, and none lets packet types be chosen.
constexpr std::uint32_t kUsualLacks = kLacksClock | kLacksPacketTypes | kLacksMtuChange;
/// What is left of ethdev where the device is a hypervisor's.
constexpr std::uint32_t kLacksOfGuests =
    kUsualLacks | kLacksLinkChange | kLacksQueueStop | kLacksQueueInfo | kLacksTxStatus | kLacksQueueSetup;

constexpr Persona own() {
  Persona persona;
  persona.name = "";
  persona.rx_offloads = persona.rx_queue_offloads = kRxOffloads;
  persona.tx_offloads = persona.tx_queue_offloads = kTxOffloads;
  persona.rss_fields = kKindFields | kAddressFields;
  persona.rss_entries = 512;
  persona.pieces_told = kMinRing;
  return persona;
}

constexpr Persona mlx5() {
  Persona persona;
  persona.name = "mlx5";
  persona.rx_ring.preferred = persona.tx_ring.preferred = 256;
  persona.ring_sizes = RingSizes::up_to_power;
  persona.reports_every = 32;
  persona.pieces_told = persona.pieces_sent = 40;
  persona.too_many_pieces = TooManyPieces::not_taken;
  persona.buffers_received = 32;
  persona.long_frames = LongFrames::refused;
  persona.rx_align = 4;
  persona.rx_buffer_told = 32;
  persona.frame_overhead = 22;
  persona.rx_offloads = kRxUsual | RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  persona.rx_queue_offloads = persona.rx_offloads;
  persona.tx_offloads = kTxOffloads;
  persona.splits = Splits::by_length;
  persona.rss_fields = kKindFields | kAddressFields;
  persona.rss_entries = 512;
  persona.flow_rules = FlowRuleTimes::while_started;
  persona.keeps_flow_rules = false;
  persona.lacks = kLacksPacketTypes | kLacksCleanup | kLacksQueueSetup;
  persona.reads_sent = {.bytes = 290, .whole = true, .from_queues = 8, .can_be_set = true};
  return persona;
}

/// What ice, i40e and iavf have in common.
constexpr Persona intel(std::string_view name) {
  Persona persona;
  persona.name = name;
  persona.rx_ring = persona.tx_ring = {.least = 64, .most = 4096, .multiple = 32, .preferred = 512};
  persona.rx_free_thresh = persona.tx_free_thresh = persona.tx_rs_thresh = 32;
  persona.rs_divides_ring = true;
  persona.pieces_told = persona.pieces_sent = 8;
  persona.buffers_received = 5;
  persona.long_frames = LongFrames::scattered;
  persona.rx_align = 8;
  persona.rx_buffer_unit = 128;
  persona.rx_buffer_told = 1024;
  persona.link_up_after = 2;
  persona.frame_overhead = 26;
  persona.rx_offloads = kRxUsual;
  persona.tx_offloads = kTxOffloads;
  persona.tx_queue_offloads = kFastFree;
  persona.rss_fields = kKindFields | kAddressFields;
  persona.rss_key_bytes = 52;
  persona.splits = Splits::none;
  persona.lacks = kUsualLacks | kLacksQueueStats;
  return persona;
}

constexpr Persona ice() {
  Persona persona = intel("ice");
  persona.rx_ring.preferred = persona.tx_ring.preferred = 1024;
  persona.rx_offloads |= RTE_ETH_RX_OFFLOAD_TIMESTAMP | RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  persona.rx_queue_offloads = RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  persona.splits = Splits::behind_headers;
  persona.split_segments = 2;
  persona.split_offsets = false;
  persona.rss_entries = 512;
  persona.lacks |= kLacksQueueSetup;
  return persona;
}

constexpr Persona i40e() {
  Persona persona = intel("i40e");
  persona.rss_fields = kKindFields;
  persona.rss_entries = 512;
  persona.keeps_flow_rules = false;
  return persona;
}

constexpr Persona iavf() {
  Persona persona = intel("iavf");
  persona.tx_queue_offloads = 0;
  persona.rss_entries = 64;
  persona.rx_queues = persona.tx_queues = 16;
  persona.keeps_flow_rules = false;
  persona.lacks |= kLacksLinkChange | kLacksQueueSetup;
  return persona;
}

constexpr Persona ixgbe() {
  Persona persona = intel("ixgbe");
  persona.rx_ring = persona.tx_ring = {.least = 64, .most = 4096, .multiple = 8, .preferred = 256};
  persona.pieces_told = persona.pieces_sent = 40;
  persona.buffers_received = 0;
  persona.rx_align = 4;
  persona.rx_buffer_unit = 1024;
  persona.link_up_after = 3;
  persona.frame_overhead = 18;
  persona.tx_offloads = kTxFullOffloads;
  persona.tx_queue_offloads = 0;
  persona.rss_fields = kPortFields | kAddressFields;
  persona.rss_entries = 128;
  persona.rss_key_bytes = 40;
  persona.lacks = (kUsualLacks & ~std::uint32_t{kLacksMtuChange}) | kLacksQueueSetup;
  return persona;
}

constexpr Persona ena() {
  Persona persona;
  persona.name = "ena";
  persona.rx_ring = {.least = 128, .most = 8192, .multiple = 1, .preferred = 1024};
  persona.tx_ring = {.least = 128, .most = 1024, .multiple = 1, .preferred = 1024};
  persona.ring_sizes = RingSizes::powers_of_two;
  persona.reports_every = 1;
  persona.pieces_told = 17;
  persona.pieces_sent = 16;
  persona.too_many_pieces = TooManyPieces::not_taken;
  persona.buffers_received = 17;
  persona.long_frames = LongFrames::scattered;
  persona.rx_queues = persona.tx_queues = 8;
  persona.rx_buffer_least = 1400;
  persona.least_mtu = 128;
  persona.frame_overhead = 18;
  persona.rx_offloads = kRxUsual;
  persona.tx_offloads = kTxOffloads;
  persona.tx_queue_offloads = kFastFree;
  persona.splits = Splits::none;
  persona.rss_fields = kPortFields;
  persona.rss_entries = 128;
  persona.flow_rules = FlowRuleTimes::never;
  persona.lacks = (kLacksOfGuests & ~std::uint32_t{kLacksMtuChange}) | kLacksPromiscuous | kLacksAddresses |
                  kLacksRxStatus | kLacksStatsReset;
  persona.reads_sent = {.bytes = 96};
  return persona;
}

constexpr Persona bnxt() {
  Persona persona;
  persona.name = "bnxt";
  persona.rx_ring = {.least = 64, .most = 8192, .multiple = 1, .preferred = 512};
  persona.tx_ring = {.least = 64, .most = 4096, .multiple = 1, .preferred = 512};
  persona.rx_free_thresh = persona.tx_free_thresh = persona.tx_rs_thresh = 32;
  persona.pieces_sent = 31;
  persona.long_frames = LongFrames::scattered;
  persona.too_many_pieces = TooManyPieces::not_taken;
  persona.rx_align = 8;
  persona.rx_buffer_told = 1;
  persona.link_up_after = 3;
  persona.frame_overhead = 26;
  persona.rx_offloads = kRxUsual;
  persona.tx_offloads = kTxOffloads;
  persona.tx_queue_offloads = kFastFree;
  persona.splits = Splits::none;
  persona.rss_fields = kPortFields | kAddressFields;
  persona.rss_entries = 128;
  persona.flow_rules = FlowRuleTimes::while_started;
  persona.keeps_flow_rules = false;
  persona.lacks = kUsualLacks | kLacksCleanup;
  return persona;
}

constexpr Persona virtio() {
  Persona persona;
  persona.name = "virtio";
  persona.ring_sizes = RingSizes::as_the_device_has;
  persona.device_ring = 256;
  persona.long_frames = LongFrames::refused;
  persona.reports_every = 1;
  persona.rx_queues = persona.tx_queues = 8;
  persona.frame_overhead = 30;
  persona.rx_offloads = kL4Checksums | RTE_ETH_RX_OFFLOAD_SCATTER;
  persona.tx_offloads = kTxL4Checksums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  persona.splits = Splits::none;
  persona.rss_fields = kPortFields | kAddressFields;
  persona.rss_entries = 128;
  persona.flow_rules = FlowRuleTimes::never;
  persona.lacks = (kLacksOfGuests & ~std::uint32_t{kLacksMtuChange}) | kLacksCleanup | kLacksRxStatus;
  persona.touches_received = 54;
  persona.touches_with = kL4Checksums;
  return persona;
}

constexpr Persona vmxnet3() {
  Persona persona;
  persona.name = "vmxnet3";
  persona.rx_ring = {.least = 128, .most = 4096, .multiple = 1, .preferred = 512};
  persona.tx_ring = {.least = 512, .most = 4096, .multiple = 1, .preferred = 512};
  persona.ring_sizes = RingSizes::down_to_multiple;
  persona.reports_every = 1;
  persona.pieces_told = persona.pieces_sent = 16;
  persona.long_frames = LongFrames::scattered;
  persona.rx_queues = 16;
  persona.tx_queues = 8;
  persona.power_of_two_queues = true;
  persona.rx_buffer_told = 1646;
  persona.least_mtu = 60;
  persona.frame_overhead = 22;
  persona.rx_offloads = kL4Checksums | RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
  persona.tx_offloads = kTxL4Checksums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  persona.splits = Splits::none;
  persona.rss_fields = kPortFields | kAddressFields;
  persona.rss_entries = 128;
  persona.rss_entries_of_queues = true;
  persona.rss_key_told = false;
  persona.flow_rules = FlowRuleTimes::never;
  persona.lacks = kLacksOfGuests | kLacksCleanup | kLacksFieldChange;
  persona.reads_sent = {.bytes = 128, .whole = true, .single = true};
  return persona;
}

constexpr Persona gve() {
  Persona persona;
  persona.name = "gve";
  persona.rx_ring = persona.tx_ring = {.least = 1024, .most = 1024, .multiple = 1, .preferred = 1024};
  persona.rx_free_thresh = 512;
  persona.tx_free_thresh = 256;
  persona.reports_every = 1;
  persona.buffers_received = 1;
  persona.rx_queues = persona.tx_queues = 16;
  persona.rx_buffer_told = 2048;
  persona.rx_buffer_unit = 1;
  persona.rx_buffer_most = 2048;
  persona.most_mtu = 1460;
  persona.frame_overhead = 14;
  persona.tx_offloads = kTxL4Checksums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  persona.splits = Splits::none;
  persona.rss_fields = 0;
  persona.rss_key_told = false;
  persona.flow_rules = FlowRuleTimes::never;
  persona.lacks = kLacksOfGuests | kLacksPromiscuous | kLacksAddresses | kLacksCleanup | kLacksRxStatus | kLacksStats |
                  kLacksRssControl;
  persona.reads_sent = {.bytes = UINT16_MAX, .whole = true};
  persona.touches_received = UINT16_MAX;
  return persona;
}

constexpr Persona kPersonas[] = {own(), mlx5(), ice(),    i40e(),    ixgbe(), iavf(),
                                 ena(), bnxt(), virtio(), vmxnet3(), gve()};

}  // namespace

std::uint16_t ring_in_force(const Persona& persona, std::uint16_t asked) {
  switch (persona.ring_sizes) {
    case RingSizes::exact:
      return asked;
    case RingSizes::powers_of_two:
      return std::has_single_bit(asked) ? asked : std::uint16_t{0};
    case RingSizes::up_to_power:
      return std::bit_ceil(asked);
    case RingSizes::down_to_multiple:
      return static_cast<std::uint16_t>(asked - asked % kRoundedTo);
    case RingSizes::as_the_device_has:
      return std::min(asked, persona.device_ring);
  }
  return asked;
}

std::span<const Persona> personas() { return kPersonas; }

const Persona* find_persona(std::string_view name) {
  const auto* const found = std::ranges::find(kPersonas, name, &Persona::name);
  return found == std::end(kPersonas) ? nullptr : found;
}

}  // namespace warpline::vnic
