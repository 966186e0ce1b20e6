// SPDX-License-Identifier: Apache-2.0
#include "wire_frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "warpline/base/random.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kIp = 14;
constexpr std::uint32_t kTypeOfService = kIp + 1;
constexpr std::uint32_t kIdentification = kIp + 4;
constexpr std::uint32_t kIpSum = kIp + 10;
constexpr std::uint32_t kHeaders = 42;
/// The number stands so often, so that one wrong bit does not hide it.
constexpr std::uint32_t kCopies = 3;
constexpr std::uint8_t kEct0 = 2;
constexpr std::uint8_t kCongested = 3;

packet::FrameBytes make(std::uint32_t number, std::size_t length, std::uint64_t salt) {
  packet::FrameBytes bytes(length);
  Random random(salt + number);
  for (std::size_t i = kHeaders; i < length; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, length - i));
  }
  for (std::uint32_t i = 0; i < kCopies; ++i) packet::store_be32(bytes.data() + kHeaders + 4 * i, number);
  packet::UdpFrame header;
  header.destination_mac = packet::kTestDestinationMac;
  header.source_mac = packet::kTestSourceMac;
  header.source = packet::kTestSourceV4;
  header.destination = packet::kTestDestinationV4;
  header.source_port = 49152;
  header.destination_port = 9;
  header.identification = static_cast<std::uint16_t>(number);
  header.type_of_service = kEct0;
  static_cast<void>(packet::emit(header, bytes));
  return bytes;
}

packet::FrameBytes mark(packet::FrameBytes bytes) {
  bytes[kTypeOfService] |= kCongested;
  packet::store_be16(bytes.data() + kIpSum, 0);
  packet::store_be16(bytes.data() + kIpSum, packet::checksum(bytes.data() + kIp, 20));
  return bytes;
}

/// Bits in which they differ within the shorter one; the IPv4 checksum's apart.
struct Distance {
  unsigned elsewhere = 0;
  unsigned in_checksum = 0;
};
Distance distance(const packet::FrameBytes& a, const packet::FrameBytes& b) {
  constexpr std::size_t kBlock = 64;
  Distance bits;
  const std::size_t length = std::min(a.size(), b.size());
  for (std::size_t block = 0; block < length; block += kBlock) {
    const std::size_t end = std::min(block + kBlock, length);
    if (std::memcmp(a.data() + block, b.data() + block, end - block) == 0) continue;
    for (std::size_t i = block; i < end; ++i) {
      const auto differ = static_cast<unsigned>(std::popcount(static_cast<std::uint8_t>(a[i] ^ b[i])));
      (i == kIpSum || i == kIpSum + 1 ? bits.in_checksum : bits.elsewhere) += differ;
    }
  }
  return bits;
}

}  // namespace

WireFrames::WireFrames(std::uint32_t count, std::size_t length, std::uint64_t salt) {
  for (std::uint32_t i = 0; i < count; ++i) {
    frames_.push_back(make(i, length, salt));
    marked_.push_back(mark(frames_.back()));
  }
}

WireFrames::Finding WireFrames::compare(const packet::FrameBytes& received, std::uint32_t number) const {
  const packet::FrameBytes& frame = frames_[number];
  Finding finding;
  finding.number = number;
  finding.truncated = received.size() < frame.size();
  const Distance from_sent = distance(received, frame);
  if (received.size() > frame.size()) {
    finding.foreign = true;
    return finding;
  }
  if (from_sent.elsewhere + from_sent.in_checksum <= 1) {
    finding.corrupted = from_sent.elsewhere + from_sent.in_checksum == 1;
    return finding;
  }
  const Distance from_marked = distance(received, marked_[number]);
  if (from_marked.elsewhere + (from_marked.in_checksum != 0 ? 1U : 0U) <= 1) {
    // A wrong bit in the checksum carries over into others when the checksum is adapted to the mark.
    finding.marked = true;
    finding.corrupted = from_marked.elsewhere + from_marked.in_checksum != 0;
  } else {
    finding.foreign = true;
  }
  return finding;
}

WireFrames::Finding WireFrames::look_at(const packet::FrameBytes& received) const {
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t at = kHeaders; at + 4 <= received.size() && at < kHeaders + 4 * kCopies; at += 4) {
    candidates.push_back(packet::load_be32(received.data() + at));
  }
  if (received.size() >= kIdentification + 2)
    candidates.push_back(packet::load_be16(received.data() + kIdentification));
  for (const std::uint32_t candidate : candidates) {
    if (candidate >= count()) continue;
    const Finding finding = compare(received, candidate);
    if (finding.foreign) continue;
    // One that is known by a corrupted number might be another's stub.
    if (!finding.corrupted || received.size() >= kHeaders + 4 * kCopies) return finding;
  }
  Finding best;
  best.foreign = true;
  for (std::uint32_t number = 0; number < count(); ++number) {
    Finding finding = compare(received, number);
    if (finding.foreign || (!best.foreign && finding.corrupted)) continue;
    finding.number.reset();
    best = finding;
  }
  return best;
}

}  // namespace warpline::vnic
