// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/pcapng.h"

#include <cstring>

namespace warpline::capture {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kNameResolution = 4;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint64_t kUnknownLength = UINT64_MAX;
constexpr std::uint16_t kEthernet = 1;  // LINKTYPE_ETHERNET

constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kComment = 1;
constexpr std::uint16_t kApplication = 4;     // of a section
constexpr std::uint16_t kInterfaceName = 2;   // of an interface
constexpr std::uint16_t kTimeResolution = 9;  // of an interface: a power of ten, negated
constexpr std::uint16_t kPacketFlags = 2;     // of a packet
constexpr std::uint16_t kPacketQueue = 6;     // of a packet

constexpr std::size_t kFrame = 12;      // type, and the length before and behind
constexpr std::size_t kOptionHead = 4;  // code and length
constexpr std::size_t kPacketFields = 20;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; }

std::size_t option_size(std::size_t bytes) { return kOptionHead + padded(bytes); }

/// Writes one block into space for just that.
class BlockWriter {
 public:
  /// `body` is the block's size without its type and lengths, a multiple of four.
  BlockWriter(std::vector<std::uint8_t>& out, std::uint32_t type, std::size_t body) {
    const std::size_t begin = out.size();
    out.resize(begin + kFrame + body);
    at_ = out.data() + begin;
    length_ = static_cast<std::uint32_t>(kFrame + body);
    put(type);
    put(length_);
  }
  ~BlockWriter() { put(length_); }
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  template <typename T>
  void put(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  /// The padding is zero, as the vector made it.
  void put_bytes(const void* bytes, std::size_t size) {
    if (size != 0) std::memcpy(at_, bytes, size);
    at_ += padded(size);
  }
  /// A record, or option, of zeros.
  void put_zeros(std::uint16_t code, std::size_t size) {
    put(code);
    put(static_cast<std::uint16_t>(size));
    at_ += padded(size);
  }
  void put_option(std::uint16_t code, const void* bytes, std::size_t size) {
    put(code);
    put(static_cast<std::uint16_t>(size));
    put_bytes(bytes, size);
  }
  void put_option(std::uint16_t code, std::uint32_t value) { put_option(code, &value, sizeof value); }
  void end_options() { put_option(kEndOfOptions, nullptr, 0); }

 private:
  std::uint8_t* at_;
  std::uint32_t length_;
};

std::size_t packet_body(const PacketBlock& packet) {
  const std::size_t comment = packet.comment.empty() ? 0 : option_size(packet.comment.size());
  return kPacketFields + padded(packet.bytes.size()) + 2 * option_size(sizeof(std::uint32_t)) + comment + kOptionHead;
}

}  // namespace

void append_section_header(std::vector<std::uint8_t>& out, std::string_view application) {
  BlockWriter block(out, kSectionHeader, 16 + option_size(application.size()) + kOptionHead);
  block.put(kByteOrder);
  block.put(std::uint16_t{1});  // version 1.0
  block.put(std::uint16_t{0});
  block.put(kUnknownLength);
  block.put_option(kApplication, application.data(), application.size());
  block.end_options();
}

void append_interface(std::vector<std::uint8_t>& out, std::string_view name, std::uint32_t snaplen) {
  constexpr std::uint8_t kNanoseconds = 9;
  BlockWriter block(out, kInterfaceDescription, 8 + option_size(name.size()) + option_size(1) + kOptionHead);
  block.put(kEthernet);
  block.put(std::uint16_t{0});
  block.put(snaplen);
  block.put_option(kInterfaceName, name.data(), name.size());
  block.put_option(kTimeResolution, &kNanoseconds, sizeof kNanoseconds);
  block.end_options();
}

void append_filler(std::vector<std::uint8_t>& out, std::size_t bytes) {
  constexpr std::uint16_t kEndOfRecords = 0;
  constexpr std::uint16_t kLocalRecord = 0x8000;  // which readers skip
  BlockWriter block(out, kNameResolution, bytes - kFrame);
  if (bytes != kLeastFiller) block.put_zeros(kLocalRecord, bytes - kLeastFiller - kOptionHead);
  block.put_zeros(kEndOfRecords, 0);
}

std::size_t size_of(const PacketBlock& packet) { return kFrame + packet_body(packet); }

void append_packet(std::vector<std::uint8_t>& out, const PacketBlock& packet) {
  BlockWriter block(out, kEnhancedPacket, packet_body(packet));
  block.put(packet.interface);
  block.put(static_cast<std::uint32_t>(packet.time_ns >> 32));
  block.put(static_cast<std::uint32_t>(packet.time_ns));
  block.put(static_cast<std::uint32_t>(packet.bytes.size()));
  block.put(packet.length);
  block.put_bytes(packet.bytes.data(), packet.bytes.size());
  block.put_option(kPacketFlags, static_cast<std::uint32_t>(packet.direction));
  block.put_option(kPacketQueue, packet.queue);
  if (!packet.comment.empty()) block.put_option(kComment, packet.comment.data(), packet.comment.size());
  block.end_options();
}

}  // namespace warpline::capture
