// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/random.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/placement.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/parse.h"

namespace warpline::flow {

/// `PacketReading` is what a packet's header says of its place.
struct PacketReading {
  Placement placement = Placement::placed;  ///< `placed`, or why the packet is in no frame
  std::uint32_t part = 0;                   ///< packet of its unit
  std::uint32_t payload_offset = 0;         ///< bytes from the FrameRef's first byte on
  std::uint64_t number = 0;                 ///< sequence number of its unit
  std::uint64_t key = 0;                    ///< of its stream
};

/// `PacketExtent` is the bytes of a packet that offsets of the description count in.
struct PacketExtent {
  std::uint32_t begin = 0;   ///< bytes from the FrameRef's first byte on
  std::uint32_t length = 0;  ///< bytes
};

/// Reads the bytes of a field; the low `bits` of them are the number. `bytes` are whole and from the packet.
[[nodiscard]] WARPLINE_HD inline std::uint64_t number_at(const std::uint8_t* bytes, const NumberField& field) {
  std::uint64_t number = 0;
  const std::uint32_t count = field.bytes();
  if (field.order == ByteOrder::big) {
    if (count == 8) {
      number = packet::load_be64(bytes);
    } else {
      for (std::uint32_t i = 0; i < count; ++i) number = number << 8 | bytes[i];
    }
  } else {
    for (std::uint32_t i = count; i-- > 0;) number = number << 8 | bytes[i];
  }
  return field.bits == 64 ? number : number & ((std::uint64_t{1} << field.bits) - 1);
}

/// Reads a field of a packet into `number`. False if the packet ends before it.
[[nodiscard]] WARPLINE_HD inline bool read_field(FrameRef frame, PacketExtent extent, const NumberField& field,
                                                 std::uint64_t& number) {
  if (field.end() > extent.length) return false;
  std::uint8_t scratch[8];
  const std::uint8_t* const bytes = packet::bytes_at(frame, extent.begin + field.offset, field.bytes(), scratch);
  if (bytes == nullptr) return false;
  number = number_at(bytes, field);
  return true;
}

/// Hashes source and destination address, protocol and ports: the stream's key of StreamKind::five_tuple.
[[nodiscard]] WARPLINE_HD inline std::uint64_t five_tuple_key(FrameRef frame, const packet::ParsedFrame& parsed) {
  const bool six = parsed.l3 == packet::L3Kind::ipv6;
  const std::uint32_t addresses = six ? 32 : 8;
  std::uint8_t scratch[32];
  const std::uint8_t* bytes = packet::bytes_at(frame, parsed.l3_offset + (six ? 8U : 12U), addresses, scratch);
  std::uint64_t key = mix64(parsed.protocol);
  for (std::uint32_t i = 0; i < addresses; i += 4) key = mix64(key ^ packet::load_be32(bytes + i));
  bytes = packet::bytes_at(frame, parsed.l4_offset, 4, scratch);
  return mix64(key ^ packet::load_be32(bytes));
}

/// SPEAD-64-48 (SPEAD protocol, revision of 2010) is an 8-byte header, then items of 8 bytes, each a mode bit, 15 bits
/// of identifier and 48 of value or address; then the payload. Every packet has the first four items.
struct SpeadItems {
  static constexpr std::uint32_t kHeader = 8;
  static constexpr std::uint32_t kItem = 8;
  /// The first bytes are magic 0x53, version 4, 2 bytes of item identifier and 6 of address: 64-48.
  static constexpr std::uint32_t kMagic = 0x53040206;
  static constexpr std::uint64_t kImmediate = 0x8000;
  static constexpr std::uint64_t kHeapCounter = kImmediate | 1;
  static constexpr std::uint64_t kHeapSize = kImmediate | 2;
  static constexpr std::uint64_t kPayloadOffset = kImmediate | 3;
  static constexpr std::uint64_t kPayloadLength = kImmediate | 4;
};

WARPLINE_HD inline void read_spead(const FramePlan& plan, FrameRef frame, PacketExtent extent, PacketReading& reading) {
  std::uint8_t scratch[8];
  const std::uint8_t* bytes = extent.length < SpeadItems::kHeader
                                  ? nullptr
                                  : packet::bytes_at(frame, extent.begin, SpeadItems::kHeader, scratch);
  if (bytes == nullptr) {
    reading.placement = Placement::too_short;
    return;
  }
  const std::uint32_t items = packet::load_be16(bytes + 6);
  const std::uint32_t header = SpeadItems::kHeader + items * SpeadItems::kItem;
  if (packet::load_be32(bytes) != SpeadItems::kMagic) {
    reading.placement = Placement::malformed;
    return;
  }
  if (header > extent.length) {
    reading.placement = Placement::too_short;
    return;
  }
  std::uint64_t values[4] = {};
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < items && found != 0xf; ++i) {
    bytes =
        packet::bytes_at(frame, extent.begin + SpeadItems::kHeader + i * SpeadItems::kItem, SpeadItems::kItem, scratch);
    if (bytes == nullptr) break;
    const std::uint64_t item = packet::load_be64(bytes);
    const std::uint64_t which = (item >> 48) - SpeadItems::kHeapCounter;
    if (which > 3) continue;
    values[which] = item & 0xffff'ffff'ffff;
    found |= 1U << which;
  }
  const std::uint64_t offset = values[2];
  const std::uint64_t length = values[3];
  if (found != 0xf) {
    reading.placement = Placement::malformed;
    return;
  }
  if (values[1] != plan.unit_bytes) {  // descriptors, control, somebody else's data
    reading.placement = Placement::unrelated;
    return;
  }
  if (offset >= plan.unit_bytes) {
    reading.placement = Placement::malformed;
    return;
  }
  const auto at = static_cast<std::uint32_t>(offset);
  if (at != 0) reading.part = at < plan.first_bytes ? 0 : 1 + (at - plan.first_bytes) / plan.payload_length;
  if (reading.part >= plan.packets_per_unit || plan.part_offset(reading.part) != at ||
      length != plan.part_bytes(reading.part)) {
    reading.placement = Placement::malformed;
    return;
  }
  reading.number = values[0];
  reading.payload_offset = header;
}

/// VITA-49.0 (ANSI/VITA 49.0-2015, section 6) is read as signal data packets, with the payload behind whatever the
/// header announces.
WARPLINE_HD inline void read_vita(const FramePlan& plan, FrameRef frame, PacketExtent extent, PacketReading& reading) {
  constexpr std::uint32_t kWord = 4;
  constexpr std::uint32_t kSampleCount = 1;
  constexpr std::uint32_t kFreeRunning = 3;
  std::uint8_t scratch[12];
  const std::uint8_t* bytes = extent.length < kWord ? nullptr : packet::bytes_at(frame, extent.begin, kWord, scratch);
  if (bytes == nullptr) {
    reading.placement = Placement::too_short;
    return;
  }
  const std::uint32_t word = packet::load_be32(bytes);
  const std::uint32_t type = word >> 28;
  const bool has_class = (word >> 27 & 1) != 0;
  const bool has_trailer = (word >> 26 & 1) != 0;
  const bool has_seconds = (word >> 22 & 3) != 0;
  const std::uint32_t fraction = word >> 20 & 3;
  const std::uint32_t all = (word & 0xffff) * kWord;
  if (type > 1) {  // extension data, context, commands
    reading.placement = Placement::unrelated;
    return;
  }
  const std::uint32_t times = kWord + (type == 1 ? kWord : 0) + (has_class ? 2 * kWord : 0);
  const std::uint32_t header = times + (has_seconds ? kWord : 0) + (fraction != 0 ? 2 * kWord : 0);
  const std::uint32_t end = header + plan.payload_length + (has_trailer ? kWord : 0);
  if (all > extent.length) {
    reading.placement = Placement::too_short;
    return;
  }
  if (end > all) {
    reading.placement = header > all ? Placement::malformed : Placement::too_short;
    return;
  }
  reading.payload_offset = header;
  if (plan.sequence.bits != 0) return;
  if (fraction != (plan.rate != 0 ? kSampleCount : kFreeRunning) || (plan.rate != 0 && !has_seconds)) {
    reading.placement = Placement::malformed;
    return;
  }
  std::uint32_t at = extent.begin + times;
  std::uint64_t seconds = 0;
  if (has_seconds) {
    bytes = packet::bytes_at(frame, at, kWord, scratch);
    if (bytes == nullptr) {
      reading.placement = Placement::too_short;
      return;
    }
    seconds = packet::load_be32(bytes);
    at += kWord;
  }
  bytes = packet::bytes_at(frame, at, 2 * kWord, scratch);
  if (bytes == nullptr) {
    reading.placement = Placement::too_short;
    return;
  }
  reading.number = seconds * plan.rate + packet::load_be64(bytes);
}

/// Finds what offsets count from, and the stream's key if that is the 5-tuple. False if the packet is `unrelated`.
[[nodiscard]] WARPLINE_HD inline bool find_extent(const FramePlan& plan, FrameRef frame, PacketExtent& extent,
                                                  std::uint64_t& key) {
  extent = {0, frame.length};
  const bool raw = plan.origin == FrameOrigin::ethernet && plan.stream != StreamKind::five_tuple;
  if (plan.form == PacketForm::datagram || raw) return true;
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (parsed.verdict != Verdict::forward || parsed.l4 != packet::L4Kind::udp) return false;
  const std::uint32_t end = parsed.payload_offset + parsed.payload_length;
  extent.begin = plan.origin == FrameOrigin::ethernet ? 0 : parsed.payload_offset;
  extent.length = end - extent.begin;
  if (plan.stream == StreamKind::five_tuple) key = five_tuple_key(frame, parsed);
  return true;
}

/// Reads a packet's header. Looks at no byte beyond its segments; what `placement` says holds for host and device.
[[nodiscard]] WARPLINE_HD inline PacketReading read_packet(const FramePlan& plan, FrameRef frame) {
  PacketReading reading;
  PacketExtent extent;
  if (!find_extent(plan, frame, extent, reading.key)) {
    reading.placement = Placement::unrelated;
    return reading;
  }
  switch (plan.format) {
    case HeaderFormat::fixed:
      reading.payload_offset = plan.payload_offset;
      break;
    case HeaderFormat::spead:
      read_spead(plan, frame, extent, reading);
      break;
    case HeaderFormat::vita49:
      read_vita(plan, frame, extent, reading);
      break;
  }
  if (reading.placement != Placement::placed) return reading;
  const std::uint64_t end = std::uint64_t{reading.payload_offset} + plan.part_bytes(reading.part);
  const bool whole = end <= extent.length &&
                     (plan.sequence.bits == 0 || read_field(frame, extent, plan.sequence, reading.number)) &&
                     (plan.stream != StreamKind::field || read_field(frame, extent, plan.stream_field, reading.key));
  if (!whole) reading.placement = Placement::too_short;
  reading.payload_offset += extent.begin;
  return reading;
}

}  // namespace warpline::flow
