// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warpline/base/enum_names.h"
#include "warpline/base/result.h"

namespace warpline::flow {

/// `ByteOrder` is the order of a field's bytes.
enum class ByteOrder : std::uint8_t {
  big,     ///< The first byte is the most significant one (network order).
  little,  ///< The first byte is the least significant one.
};

/// `HeaderFormat` says what the headers of the packets look like.
enum class HeaderFormat : std::uint8_t {
  fixed,   ///< Fields lie at the same offsets in every packet.
  spead,   ///< SPEAD-64-48: one heap is spread over several packets, found by its items.
  vita49,  ///< VITA-49.0 signal data packets, found by their timestamp.
};
constexpr auto names_of(HeaderFormat) { return enum_names<HeaderFormat>({"fixed", "spead", "vita49"}); }

/// `FrameOrigin` is the byte that offsets count from.
enum class FrameOrigin : std::uint8_t {
  udp,       ///< The first byte behind the UDP header.
  ethernet,  ///< The first byte of the Ethernet frame.
};
constexpr auto names_of(FrameOrigin) { return enum_names<FrameOrigin>({"udp", "ethernet"}); }

/// `StreamKind` says how packets are told apart when several sources send.
enum class StreamKind : std::uint8_t {
  one,         ///< All packets belong to one stream.
  five_tuple,  ///< Packets of the same addresses, ports and protocol belong together.
  field,       ///< Packets of the same number in a field belong together.
};

/// `NumberField` is an unsigned number in a header: the low `bits` bits of the whole bytes from `offset` on.
struct NumberField {
  std::uint32_t offset = 0;          ///< bytes from the FrameOrigin
  std::uint32_t bits = 0;            ///< 1 to 64; 0 means that the field is not set
  ByteOrder order = ByteOrder::big;  ///< of the bytes

  /// Returns how many bytes the field lies in.
  [[nodiscard]] constexpr std::uint32_t bytes() const { return (bits + 7) / 8; }
  /// Returns the offset of the byte behind the field.
  [[nodiscard]] constexpr std::uint64_t end() const { return std::uint64_t{offset} + bytes(); }
  bool operator==(const NumberField&) const = default;
};

/// `FrameDescription` says how packets become frames in memory, as `--frame` does. parse_frame_description() makes
/// valid ones only; docs/frames.md describes the text.
struct FrameDescription {
  HeaderFormat format = HeaderFormat::fixed;
  FrameOrigin origin = FrameOrigin::udp;
  std::uint32_t packets = 0;            ///< packets per frame
  NumberField sequence;                 ///< sequence number; not set: what the format has
  std::uint32_t payload_offset = 0;     ///< HeaderFormat::fixed: bytes in front of the payload
  std::uint32_t payload_length = 0;     ///< payload bytes per packet
  std::uint64_t step = 1;               ///< by how much the sequence number advances per packet (SPEAD: per heap)
  std::uint64_t rate = 0;               ///< VITA-49: samples per second of a sample-count timestamp; 0: it runs freely
  std::uint32_t heap_bytes = 0;         ///< SPEAD: payload bytes per heap
  std::uint32_t first_bytes = 0;        ///< SPEAD: payload bytes of a heap's first packet
  std::uint32_t window = 4;             ///< frames that are assembled at a time
  std::uint32_t jump = 4;               ///< frames beyond the window, either way, that a packet alone may lie
  std::uint32_t restart = 4;            ///< packets in sequence outside of that which prove that a source restarted
  StreamKind stream = StreamKind::one;  ///< how packets are told apart
  NumberField stream_field;             ///< StreamKind::field: where the number is
  std::uint32_t streams = 1;            ///< streams at most

  /// Returns how many packets a heap has; 1 for the other formats.
  [[nodiscard]] std::uint32_t packets_per_heap() const;
  /// Returns the payload bytes of a whole frame.
  [[nodiscard]] std::uint64_t frame_bytes() const;
  /// Returns the bytes, from the origin on, of a packet with a full payload: at least so many, where headers vary.
  [[nodiscard]] std::uint32_t packet_bytes() const;
  bool operator==(const FrameDescription&) const = default;
};

/// Parses and checks "packets=N,seq=OFFSET:BITS[:be|:le],payload=OFFSET:LEN[,...]". The error of a text that does not
/// fit names the key, why it does not, and what to write.
[[nodiscard]] Result<FrameDescription> parse_frame_description(std::string_view text);

/// Checks that packets which a port spreads over so many queues by their 5-tuples can become frames, where each queue
/// has an assembler of its own: a usage error if the packets of one stream might be received by several.
[[nodiscard]] Result<void> check_queues(const FrameDescription& description, std::uint32_t queues);

/// Returns the text that parses to the same description.
[[nodiscard]] std::string to_text(const FrameDescription& description);

}  // namespace warpline::flow
