// SPDX-License-Identifier: Apache-2.0
#include "script_wire.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpline/packet/byte_order.h"

namespace warpline::stream_script {
namespace {

using packet::TcpView;
using stream::testing::Reply;

void put(FrameBytes& bytes, std::initializer_list<std::uint8_t> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

void put32(FrameBytes& bytes, std::uint32_t value) {
  bytes.resize(bytes.size() + 4);
  packet::store_be32(bytes.data() + bytes.size() - 4, value);
}

/// Sets the header's length to what it is not, and keeps the checksum right (RFC 1624, equation 3).
void set_data_offset(std::uint8_t* tcp, std::uint8_t words) {
  const std::uint16_t before = packet::load_be16(tcp + TcpView::kDataOffset);
  tcp[TcpView::kDataOffset] = static_cast<std::uint8_t>(words << 4 | (tcp[TcpView::kDataOffset] & 0x0f));
  const std::uint16_t after = packet::load_be16(tcp + TcpView::kDataOffset);
  std::uint32_t sum = static_cast<std::uint16_t>(~packet::load_be16(tcp + TcpView::kChecksum));
  sum += static_cast<std::uint16_t>(~before);
  sum += after;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  packet::store_be16(tcp + TcpView::kChecksum, static_cast<std::uint16_t>(~sum));
}

}  // namespace

std::string flags_text(std::uint8_t flags) {
  constexpr std::string_view kLetters = "FSRP.UEW";
  std::string text;
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    if ((flags >> i & 1) != 0) text += kLetters[i];
  }
  return text.empty() ? "-" : text;
}

IpAddress ScriptWire::address(bool ipv6, bool receiver) {
  if (!ipv6) return Ipv4Address{{10, 0, 0, static_cast<std::uint8_t>(receiver ? 1 : 2)}};
  return *parse_ip(receiver ? "fd00::1" : "fd00::2");
}

FrameBytes ScriptWire::options_of(const Injected& segment) {
  const Beginning& beginning = beginnings_[segment.peer];
  FrameBytes bytes;
  for (const Option& option : segment.options) {
    switch (option.kind) {
      case Option::Kind::mss:
        put(bytes, {packet::kTcpOptionMss, 4, static_cast<std::uint8_t>(option.value >> 8),
                    static_cast<std::uint8_t>(option.value)});
        break;
      case Option::Kind::nop:
        put(bytes, {packet::kTcpOptionNop});
        break;
      case Option::Kind::end:
        put(bytes, {packet::kTcpOptionEnd});
        break;
      case Option::Kind::scale:
        put(bytes, {packet::kTcpOptionWindowScale, 3, static_cast<std::uint8_t>(option.value)});
        break;
      case Option::Kind::permitted:
        put(bytes, {packet::kTcpOptionSackPermitted, 2});
        break;
      case Option::Kind::timestamps:
        put(bytes, {packet::kTcpOptionTimestamps, 10});
        put32(bytes, option.value);
        put32(bytes, beginning.has_timestamp ? option.echo + beginning.timestamp : option.echo);
        break;
      case Option::Kind::blocks:
        put(bytes, {packet::kTcpOptionSack, static_cast<std::uint8_t>(2 + 8 * option.blocks.size())});
        for (const auto& [begin, end] : option.blocks) {
          put32(bytes, beginning.sequence + begin);
          put32(bytes, beginning.sequence + end);
        }
        break;
      case Option::Kind::raw:
        bytes.insert(bytes.end(), option.raw.begin(), option.raw.end());
        break;
    }
  }
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

FrameBytes ScriptWire::frame_of(const Injected& segment) {
  packet::TcpFrame header;
  header.destination_mac = stream::testing::kOurMac;
  header.source_mac = stream::testing::kPeerMac;
  header.source = address(script_.ipv6, false);
  header.destination = address(script_.ipv6, true);
  header.tcp.source_port = port_of(segment.peer);
  header.tcp.destination_port = segment.port.value_or(kPort);
  header.tcp.sequence = script_.peer_initial + segment.sequence;
  header.tcp.flags = segment.flags;
  if (segment.acknowledgement) {
    header.tcp.acknowledgement = beginnings_[segment.peer].sequence + *segment.acknowledgement;
  }
  header.tcp.window = static_cast<std::uint16_t>(segment.window.value_or(65535));
  header.tcp.urgent = segment.urgent;
  const FrameBytes options = options_of(segment);
  header.tcp.options_length = static_cast<std::uint8_t>(options.size());
  std::ranges::copy(options, header.tcp.options);

  const std::uint32_t headers = packet::tcp_headers_length(header);
  FrameBytes frame(headers + segment.length);
  for (std::uint32_t i = 0; i < segment.length; ++i) {
    frame[headers + i] = segment.fill.value_or(stream::testing::pattern_at(segment.sequence - 1 + i));
  }
  packet::ChecksumSum sum;
  sum.add(frame.data() + headers, segment.length);
  (void)packet::emit(header, frame, segment.length, sum);
  std::uint8_t* const tcp = frame.data() + headers - TcpView::kHeaderLength - options.size();
  if (segment.data_offset) set_data_offset(tcp, *segment.data_offset);
  if (segment.wrong_checksum) tcp[TcpView::kChecksum] ^= 0x55;
  return frame;
}

std::optional<Reply> ScriptWire::read(FrameBytes& frame) { return stream::testing::read_reply(frame); }

/// The receiver's SYN tells where its numbers begin; what a script says of its first timestamp, where those do.
void ScriptWire::learn(const Segment& expected, const Reply& reply) {
  Beginning& beginning = beginnings_[expected.peer];
  if (reply.has(packet::kTcpSyn)) beginning.sequence = reply.tcp().sequence;
  for (const Option& option : expected.options) {
    const bool first = option.kind == Option::Kind::timestamps && !option.any_value && reply.has_timestamp &&
                       (!beginning.has_timestamp || reply.has(packet::kTcpSyn));
    if (!first) continue;
    beginning.timestamp = reply.timestamp - option.value;
    beginning.has_timestamp = true;
  }
}

std::string ScriptWire::compare(const Expected& expected, const Reply& reply, Strictness strictness) {
  if (reply.tcp().flags == expected.flags) learn(expected, reply);
  const Beginning& beginning = beginnings_[expected.peer];
  const packet::TcpHeader& tcp = reply.tcp();
  if (tcp.flags != expected.flags) return "its flags are " + flags_text(tcp.flags);
  if (tcp.destination_port != port_of(expected.peer)) return "it goes to another peer";
  if (tcp.source_port != expected.port.value_or(kPort)) return "it comes from another port";
  if (const std::uint32_t sequence = tcp.sequence - beginning.sequence; sequence != expected.sequence) {
    return fmt::format("its sequence number is {}", sequence);
  }
  if (expected.acknowledgement && acknowledged(reply) != *expected.acknowledgement) {
    return fmt::format("it acknowledges {}", acknowledged(reply));
  }
  if (expected.window) {
    const bool right =
        strictness.windows ? tcp.window == *expected.window : (tcp.window == 0) == (*expected.window == 0);
    if (!right) return fmt::format("its window is {}", tcp.window);
  }
  return expected.any_options ? std::string{} : compare_options(expected, reply, strictness);
}

/// NOPs and the order of options are the sender's affair.
std::string ScriptWire::compare_options(const Expected& expected, const Reply& reply, Strictness strictness) {
  const Beginning& beginning = beginnings_[expected.peer];
  std::optional<std::uint32_t> mss, scale;
  bool permitted = false, timestamps = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;
  for (const Option& option : expected.options) {
    if (option.kind == Option::Kind::mss) mss = option.value;
    if (option.kind == Option::Kind::scale) scale = option.value;
    permitted |= option.kind == Option::Kind::permitted;
    if (option.kind == Option::Kind::blocks) {
      for (const auto& [begin, end] : option.blocks) {
        blocks.emplace_back(script_.peer_initial + begin, script_.peer_initial + end);
      }
    }
    if (option.kind != Option::Kind::timestamps) continue;
    timestamps = true;
    if (!reply.has_timestamp) return "it has no timestamp";
    if (reply.timestamp_echo != option.echo) return fmt::format("it echoes timestamp {}", reply.timestamp_echo);
    const std::uint32_t value = reply.timestamp - beginning.timestamp;
    if (strictness.timestamps && !option.any_value && value != option.value) {
      return fmt::format("its timestamp is {}", value);
    }
  }
  if (reply.has_timestamp != timestamps) return "it has a timestamp";
  if (reply.mss.has_value() != mss.has_value()) return reply.mss ? "it has an MSS" : "it has no MSS";
  if (mss && *reply.mss != *mss) return fmt::format("its MSS is {}", *reply.mss);
  if (reply.scale.has_value() != scale.has_value()) return reply.scale ? "it has a scale" : "it has no scale";
  if (scale && strictness.scales && *reply.scale != *scale) return fmt::format("its scale is {}", *reply.scale);
  if (reply.selective != permitted) return permitted ? "it does not permit SACK" : "it permits SACK";
  if (reply.blocks != blocks) return "its SACK blocks are others";
  return {};
}

std::string ScriptWire::describe(const Reply& reply) {
  const packet::TcpHeader& tcp = reply.tcp();
  const std::uint32_t peer = tcp.destination_port - 40000U;
  const Beginning& beginning = beginnings_[peer];
  const std::uint32_t sequence = tcp.sequence - beginning.sequence;
  std::string text = fmt::format("{} {}:{}(0)", flags_text(tcp.flags), sequence, sequence);
  if ((tcp.flags & packet::kTcpAck) != 0) text += fmt::format(" ack {}", acknowledged(reply));
  text += fmt::format(" win {}", tcp.window);
  std::string options;
  if (reply.mss) options += fmt::format(" mss {}", *reply.mss);
  if (reply.selective) options += " sackOK";
  if (reply.has_timestamp) {
    options += fmt::format(" TS val {} ecr {}", reply.timestamp - beginning.timestamp, reply.timestamp_echo);
  }
  if (reply.scale) options += fmt::format(" wscale {}", *reply.scale);
  if (!reply.blocks.empty()) options += " sack";
  for (const auto& [begin, end] : reply.blocks) {
    options += fmt::format(" {}:{}", begin - script_.peer_initial, end - script_.peer_initial);
  }
  if (!options.empty()) text += " <" + options.substr(1) + ">";
  if (peer != 1) text += fmt::format(" peer {}", peer);
  return text;
}

}  // namespace warpline::stream_script
