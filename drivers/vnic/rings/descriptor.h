// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace warpline::vnic {

/// What driver and device share of a receive buffer. Posted by the driver: `address`, and the room there in `word`.
/// Written back by the device: `address` becomes hash and mark, `word` becomes length, timestamp and flags.
struct alignas(16) RxDescriptor {
  std::uint64_t address;
  std::uint64_t word;
};
static_assert(sizeof(RxDescriptor) == 16);

/// Flags of a written-back RxDescriptor, in bits 48..55 of its word. Of a frame in several descriptors, the first holds
/// hash, mark, time, kind and all flags but kRxEnd.
enum RxFlag : std::uint64_t {
  kRxDone = std::uint64_t{1} << 48,    ///< the device is done with the buffer
  kRxEnd = std::uint64_t{1} << 49,     ///< last buffer of its frame
  kRxIpGood = std::uint64_t{1} << 50,  ///< IPv4 header checksum verified
  kRxIpBad = std::uint64_t{1} << 51,
  kRxL4Good = std::uint64_t{1} << 52,  ///< UDP or TCP checksum verified
  kRxL4Bad = std::uint64_t{1} << 53,
  kRxHash = std::uint64_t{1} << 54,  ///< the hash is valid: it was used to steer
  kRxMark = std::uint64_t{1} << 55,  ///< the mark is valid: a flow rule matched
};

/// What kind of packet it is, in bits 56..62 of a written-back word: L3 (2 bits), L4 (3 bits), VLAN tags (2 bits).
inline constexpr unsigned kRxKindShift = 56;
inline constexpr std::uint64_t kRxKindMask = 0x7f;
enum class RxL3 : std::uint8_t { none, arp, ipv4, ipv6 };
enum class RxL4 : std::uint8_t { none, icmp, udp, tcp, fragment };
[[nodiscard]] constexpr std::uint64_t rx_kind(RxL3 l3, RxL4 l4, unsigned vlan_tags) {
  return (static_cast<std::uint64_t>(l3) | static_cast<std::uint64_t>(l4) << 2 | std::uint64_t{vlan_tags & 3} << 5)
         << kRxKindShift;
}

/// bits 0..15 length, 16..47 low half of the device clock in nanoseconds, 48..63 flags.
[[nodiscard]] constexpr std::uint64_t rx_done_word(std::uint16_t length, std::uint32_t nanos, std::uint64_t flags) {
  return length | std::uint64_t{nanos} << 16 | flags | kRxDone;
}
[[nodiscard]] constexpr std::uint16_t rx_length(std::uint64_t word) { return static_cast<std::uint16_t>(word); }
[[nodiscard]] constexpr std::uint32_t rx_nanos(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 16); }
[[nodiscard]] constexpr std::uint64_t rx_hash_and_mark(std::uint32_t hash, std::uint32_t mark) {
  return hash | std::uint64_t{mark} << 32;
}

/// A piece of a frame to send: `address`, and in `word` length and what is to be done with the frame. Of the flags,
/// those about checksums count in the frame's first descriptor.
struct alignas(16) TxDescriptor {
  std::uint64_t address;
  std::uint64_t word;
};
static_assert(sizeof(TxDescriptor) == 16);

/// bits 0..15 length, 16..22 L2 length, 23..31 L3 length, 48..63 flags.
enum TxFlag : std::uint64_t {
  kTxDone = std::uint64_t{1} << 48,    ///< written back by the device, into descriptors with kTxReport only
  kTxEnd = std::uint64_t{1} << 49,     ///< last piece of its frame
  kTxReport = std::uint64_t{1} << 50,  ///< completion is to be reported here, for all descriptors up to here
  kTxIpSum = std::uint64_t{1} << 51,   ///< fill in the IPv4 header checksum
  kTxUdpSum = std::uint64_t{1} << 52,  ///< fill in; the field holds the pseudo header's sum
  kTxTcpSum = std::uint64_t{1} << 53,
  kTxSums = kTxIpSum | kTxUdpSum | kTxTcpSum,
};
[[nodiscard]] constexpr std::uint64_t tx_word(std::uint16_t length, std::uint8_t l2_length, std::uint16_t l3_length,
                                              std::uint64_t flags) {
  return length | std::uint64_t{l2_length & 0x7fU} << 16 | std::uint64_t{l3_length & 0x1ffU} << 23 | flags;
}
[[nodiscard]] constexpr std::uint16_t tx_length(std::uint64_t word) { return static_cast<std::uint16_t>(word); }
[[nodiscard]] constexpr std::uint8_t tx_l2_length(std::uint64_t word) { return word >> 16 & 0x7f; }
[[nodiscard]] constexpr std::uint16_t tx_l3_length(std::uint64_t word) { return word >> 23 & 0x1ff; }

/// Write-back and its counterpart: the word is written last, so whoever sees the done bit sees all that the other side
/// wrote before it.
inline void write_back(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}
[[nodiscard]] inline std::uint64_t read_back(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace warpline::vnic
