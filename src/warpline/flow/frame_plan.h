// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/base/result.h"
#include "warpline/flow/frame_description.h"

namespace warpline::flow {

/// `PacketForm` is what an assembler is given of each packet.
enum class PacketForm : std::uint8_t {
  ethernet,  ///< the whole Ethernet frame
  datagram,  ///< the payload of a UDP datagram, as sockets have it
};

/// `FramePlan` is a FrameDescription made ready for the data path of host and device. Trivially copyable.
///
/// A frame has `units` units of `unit_bytes` bytes and `packets_per_unit` packets. A unit is what one sequence number
/// stands for: a SPEAD heap, else one packet.
struct FramePlan {
  HeaderFormat format;
  FrameOrigin origin;
  PacketForm form;
  StreamKind stream;
  NumberField sequence;      ///< `bits` is 0 where the format has a number of its own
  NumberField stream_field;  ///< StreamKind::field
  std::uint32_t payload_offset;
  std::uint32_t payload_length;
  std::uint32_t packets;
  std::uint32_t units;
  std::uint32_t packets_per_unit;
  std::uint32_t unit_bytes;
  std::uint32_t first_bytes;
  std::uint32_t window;      ///< frames
  std::uint32_t jump;        ///< frames
  std::uint32_t restart;     ///< packets
  std::uint32_t streams;     ///< at most
  std::uint32_t bits;        ///< of a sequence number, the format's own included
  std::uint64_t step;        ///< sequence numbers per unit
  std::uint64_t frame_step;  ///< sequence numbers per frame
  std::uint64_t rate;

  /// Returns the bytes of a frame's payload.
  [[nodiscard]] WARPLINE_HD std::uint64_t frame_bytes() const { return std::uint64_t{units} * unit_bytes; }

  /// Returns `number` modulo the numbers that there are.
  [[nodiscard]] WARPLINE_HD std::uint64_t wrapped(std::uint64_t number) const {
    return bits == 64 ? number : number & ((std::uint64_t{1} << bits) - 1);
  }

  /// Returns how far number `a` is ahead of number `b`, by serial arithmetic (RFC 1982): negative if it is behind.
  [[nodiscard]] WARPLINE_HD std::int64_t ahead(std::uint64_t a, std::uint64_t b) const {
    const std::uint32_t unused = 64 - bits;
    return static_cast<std::int64_t>((a - b) << unused) >> unused;
  }

  /// Returns the bytes of packet `part` of a unit.
  [[nodiscard]] WARPLINE_HD std::uint32_t part_bytes(std::uint32_t part) const {
    if (part == 0) return first_bytes;
    const std::uint32_t left = unit_bytes - part_offset(part);
    return left < payload_length ? left : payload_length;
  }

  /// Returns where the payload of packet `slot` of a frame begins in the frame.
  [[nodiscard]] WARPLINE_HD std::uint64_t slot_offset(std::uint32_t slot) const {
    if (packets_per_unit == 1) return std::uint64_t{slot} * unit_bytes;
    const std::uint32_t unit = slot / packets_per_unit;
    return std::uint64_t{unit} * unit_bytes + part_offset(slot - unit * packets_per_unit);
  }

  /// Returns the payload bytes of packet `slot` of a frame.
  [[nodiscard]] WARPLINE_HD std::uint32_t slot_bytes(std::uint32_t slot) const {
    return part_bytes(packets_per_unit == 1 ? 0 : slot % packets_per_unit);
  }

  /// Returns where packet `part` begins in its unit.
  [[nodiscard]] WARPLINE_HD std::uint32_t part_offset(std::uint32_t part) const {
    return part == 0 ? 0 : first_bytes + (part - 1) * payload_length;
  }
};

/// Makes the plan of a valid description. A usage error if packets of that form do not have what it wants.
[[nodiscard]] Result<FramePlan> make_frame_plan(const FrameDescription& description, PacketForm form);

}  // namespace warpline::flow
