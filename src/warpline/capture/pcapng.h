// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace warpline::capture {

// Blocks of pcapng, as draft-ietf-opsawg-pcapng has them, in the byte order of the processor. Each function appends one
// block to `out`.

/// Which way a packet went past its interface; the values are those of the option epb_flags.
enum class Direction : std::uint8_t { inbound = 1, outbound = 2 };

/// One packet as it is written.
struct PacketBlock {
  std::uint32_t interface = 0;            ///< index of its interface's block in the section
  std::uint64_t time_ns = 0;              ///< since 1970
  std::uint32_t length = 0;               ///< bytes on the wire, without FCS
  std::span<const std::uint8_t> bytes{};  ///< those that were kept
  Direction direction = Direction::inbound;
  std::uint32_t queue = 0;     ///< of the interface
  std::string_view comment{};  ///< UTF-8; empty: none
};

/// Appends the Section Header Block, with which a file begins. `application` is what wrote it.
void append_section_header(std::vector<std::uint8_t>& out, std::string_view application);

/// Appends the Interface Description Block of an Ethernet interface whose times are nanoseconds.
void append_interface(std::vector<std::uint8_t>& out, std::string_view name, std::uint32_t snaplen);

/// Appends an Enhanced Packet Block.
void append_packet(std::vector<std::uint8_t>& out, const PacketBlock& packet);

/// The size of the smallest block that fills space.
inline constexpr std::size_t kLeastFiller = 16;

/// Appends a Name Resolution Block without names, which says nothing, of so many bytes: a multiple of four, from
/// kLeastFiller to 64 KiB.
void append_filler(std::vector<std::uint8_t>& out, std::size_t bytes);

/// Returns the bytes that append_packet() appends.
[[nodiscard]] std::size_t size_of(const PacketBlock& packet);

}  // namespace warpline::capture
