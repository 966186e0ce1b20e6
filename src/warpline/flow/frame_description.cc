// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/frame_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/nearest.h"
#include "warpline/base/units.h"

namespace warpline::flow {
namespace {

constexpr std::uint64_t kMaxPackets = 1 << 20;
constexpr std::uint64_t kMaxWindow = 256;
constexpr std::uint64_t kMaxJump = 1 << 20;
constexpr std::uint64_t kMaxRestart = 1 << 16;
constexpr std::uint64_t kMaxStreams = 4096;
constexpr std::uint64_t kMaxStep = 1ULL << 48;
constexpr std::uint64_t kMaxHeap = 1 << 30;
/// The rate of a sample-count timestamp is below 2^32, so that seconds of 32 bits times the rate fit in 64.
constexpr std::uint64_t kMaxRate = (1ULL << 32) - 1;
/// An IP datagram has no more bytes, and no Ethernet frame.
constexpr std::uint64_t kMaxPacketBytes = 65535;
/// SPEAD: the header, and pointers to counter, size, offset and payload length.
constexpr std::uint32_t kSpeadHeader = 8 + 4 * 8;
/// VITA-49: header, stream identifier and fractional timestamp.
constexpr std::uint32_t kVitaHeader = 4 + 4 + 8;

constexpr std::string_view kExample = "packets=1024,seq=0:64,payload=8:1024";

Error refused(std::string_view key, std::string why, std::string fix) {
  return usage_error(fmt::format("cannot use '{}' of the frame description", key), std::move(why), std::move(fix));
}

/// The keys and values of the text, each key once.
class Entries {
 public:
  static Result<Entries> split(std::string_view text) {
    static const std::vector<std::string> known = {"format", "from", "heap", "first",  "jump",    "packets", "payload",
                                                   "rate",   "seq",  "step", "stream", "streams", "restart", "window"};
    Entries entries;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string_view entry = text.substr(begin, end - begin);
      const std::size_t equals = entry.find('=');
      const std::string key(entry.substr(0, equals));
      if (equals == std::string_view::npos || key.empty() || equals + 1 == entry.size()) {
        return usage_error(fmt::format("cannot read '{}' of the frame description", entry), "it is not KEY=VALUE",
                           fmt::format("write it like {}", kExample));
      }
      if (std::ranges::find(known, key) == known.end()) {
        return usage_error(fmt::format("cannot read '{}' of the frame description", entry), "there is no such key",
                           fmt::format("did you mean {}?", nearest(key, known)));
      }
      if (entries.find(key)) return refused(key, "it is given twice", "give it once");
      entries.entries_.push_back({key, entry.substr(equals + 1)});
      begin = end + 1;
    }
    return entries;
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const {
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    return found == entries_.end() ? std::nullopt : std::optional(found->value);
  }

  /// Reads a number from `low` to `high` into `to`, if the key is given.
  template <typename T>
  Result<void> number(std::string_view key, std::uint64_t low, std::uint64_t high, T& to) const {
    const auto value = find(key);
    if (!value) return {};
    WARPLINE_TRY(const std::uint64_t read, number_of(key, *value, low, high));
    to = static_cast<T>(read);
    return {};
  }

  static Result<std::uint64_t> number_of(std::string_view key, std::string_view text, std::uint64_t low,
                                         std::uint64_t high) {
    const Result<std::uint64_t> read = parse_count(text);
    if (!read || *read < low || *read > high) {
      return refused(key, fmt::format("'{}' is not a whole number from {} to {}", text, low, high),
                     fmt::format("write a number from {} to {}", low, high));
    }
    return *read;
  }

 private:
  struct Entry {
    std::string key;
    std::string_view value;
  };
  std::vector<Entry> entries_;
};

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// "OFFSET:BITS[:be|:le]"
Result<NumberField> field_of(std::string_view key, std::string_view text) {
  const std::vector<std::string_view> parts = parts_of(text);
  const bool order = parts.size() == 2 || (parts.size() == 3 && (parts[2] == "be" || parts[2] == "le"));
  if (!order) {
    return refused(key, fmt::format("'{}' is not OFFSET:BITS, OFFSET:BITS:be or OFFSET:BITS:le", text),
                   fmt::format("write it like {}=0:64 or {}=4:32:le", key, key));
  }
  WARPLINE_TRY(const std::uint64_t offset, Entries::number_of(key, parts[0], 0, kMaxPacketBytes));
  WARPLINE_TRY(const std::uint64_t bits, Entries::number_of(key, parts[1], 1, 64));
  NumberField field{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bits),
                    parts.size() == 3 && parts[2] == "le" ? ByteOrder::little : ByteOrder::big};
  return field;
}

Result<void> read_format(const Entries& entries, FrameDescription& description) {
  const std::string_view format = entries.find("format").value_or("fixed");
  if (format == "spead") {
    description.format = HeaderFormat::spead;
  } else if (format == "vita49") {
    description.format = HeaderFormat::vita49;
  } else if (format == "counter") {
    description.sequence = {0, 64, ByteOrder::big};
    description.payload_offset = 8;
  } else if (format != "fixed") {
    return refused("format", fmt::format("there is no format '{}'", format),
                   "use counter, spead or vita49, or describe the fields with seq and payload");
  }
  const std::string_view from = entries.find("from").value_or("udp");
  if (from != "udp" && from != "ethernet") {
    return refused("from", fmt::format("offsets do not count from '{}'", from), "use udp or ethernet");
  }
  description.origin = from == "udp" ? FrameOrigin::udp : FrameOrigin::ethernet;
  if (description.format != HeaderFormat::fixed && description.origin == FrameOrigin::ethernet) {
    return refused("from", "the header of this format begins behind the UDP header", "leave it out");
  }
  return {};
}

Result<void> read_payload(const Entries& entries, bool counter, FrameDescription& description) {
  const auto text = entries.find("payload");
  if (!text) return refused("payload", "it is missing", fmt::format("write it like {}", kExample));
  const std::vector<std::string_view> parts = parts_of(*text);
  const bool fixed = description.format == HeaderFormat::fixed;
  if (parts.size() > 2 || (parts.size() == 1 && fixed && !counter)) {
    return refused("payload", fmt::format("'{}' is not OFFSET:LEN", *text), "write it like payload=8:1024");
  }
  if (parts.size() == 2 && !fixed) {
    return refused("payload", "the packets of this format tell where their payload begins", "write payload=LEN");
  }
  if (parts.size() == 2) {
    WARPLINE_TRY(const std::uint64_t offset, Entries::number_of("payload", parts[0], 0, kMaxPacketBytes));
    description.payload_offset = static_cast<std::uint32_t>(offset);
  }
  WARPLINE_TRY(const std::uint64_t length, Entries::number_of("payload", parts.back(), 1, kMaxPacketBytes));
  description.payload_length = static_cast<std::uint32_t>(length);
  if (description.packet_bytes() > kMaxPacketBytes) {
    return refused("payload",
                   fmt::format("it ends at byte {}, and no packet is longer than {} bytes", description.packet_bytes(),
                               kMaxPacketBytes),
                   "make it shorter");
  }
  return {};
}

Result<void> read_streams(const Entries& entries, FrameDescription& description) {
  const auto text = entries.find("stream");
  if (text && *text == "5-tuple") {
    description.stream = StreamKind::five_tuple;
  } else if (text) {
    description.stream = StreamKind::field;
    WARPLINE_TRY(description.stream_field, field_of("stream", *text));
  }
  if (entries.find("streams") && !text) {
    return refused("streams", "all packets belong to one stream", "add stream=5-tuple or stream=OFFSET:BITS");
  }
  if (text) description.streams = 16;
  return entries.number("streams", 1, kMaxStreams, description.streams);
}

/// SPEAD's keys, which no other format has.
Result<void> read_heaps(const Entries& entries, FrameDescription& description) {
  if (description.format != HeaderFormat::spead) {
    for (const char* key : {"heap", "first"}) {
      if (entries.find(key)) return refused(key, "only SPEAD has heaps", "leave it out, or add format=spead");
    }
    return {};
  }
  const std::uint64_t all = std::uint64_t{description.packets} * description.payload_length;
  if (!entries.find("heap") && all > kMaxHeap) {
    return refused("heap", fmt::format("a heap of {} bytes is longer than {}", all, kMaxHeap),
                   "write heap=BYTES, the payload bytes of one heap");
  }
  description.heap_bytes = static_cast<std::uint32_t>(std::min(all, kMaxHeap));
  WARPLINE_CHECK(entries.number("heap", 1, kMaxHeap, description.heap_bytes));
  description.first_bytes = std::min(description.payload_length, description.heap_bytes);
  WARPLINE_CHECK(entries.number("first", 1, description.first_bytes, description.first_bytes));
  const std::uint32_t per_heap = description.packets_per_heap();
  if (description.packets % per_heap != 0) {
    return refused("packets",
                   fmt::format("a heap of {} bytes is {} packets, and {} packets are not whole heaps",
                               description.heap_bytes, per_heap, description.packets),
                   fmt::format("write a multiple of {}", per_heap));
  }
  return {};
}

/// The timestamp of VITA-49.
Result<void> read_rate(const Entries& entries, FrameDescription& description) {
  const bool timed = description.format == HeaderFormat::vita49 && description.sequence.bits == 0;
  if (entries.find("rate") && !timed) {
    return refused("rate", "the sequence number is no timestamp of VITA-49", "leave it out");
  }
  if (timed && !entries.find("step")) {
    return refused("step", "it is missing: VITA-49 numbers packets by their timestamps",
                   "write step=SAMPLES, the samples per packet");
  }
  return entries.number("rate", 1, kMaxRate, description.rate);
}

Result<void> check_field(std::string_view key, const NumberField& field, const FrameDescription& description) {
  if (description.format == HeaderFormat::fixed && field.end() > description.payload_offset) {
    return refused(key,
                   fmt::format("it ends at byte {}, but the header ends at byte {}, where the payload begins",
                               field.end(), description.payload_offset),
                   "give a field in front of the payload");
  }
  if (field.end() > kMaxPacketBytes) {
    return refused(key, fmt::format("it ends at byte {}, and no packet is so long", field.end()),
                   "give a field of the header");
  }
  return {};
}

/// Sequence numbers come round. What lies in the window, or a jump away from it, must be told apart all the same.
Result<void> check_numbers(const FrameDescription& description) {
  __extension__ using Wide = unsigned __int128;
  const std::uint32_t own_bits = description.format == HeaderFormat::spead ? 48 : 64;
  const std::uint32_t bits = description.sequence.bits != 0 ? description.sequence.bits : own_bits;
  const std::uint64_t frames = description.window + 2ULL * description.jump;
  const Wide needed = Wide{description.packets / description.packets_per_heap()} * frames * description.step;
  if (needed > Wide{1} << (bits - 1)) {
    return refused(
        "seq",
        fmt::format("a number of {} bits is too short: window and jumps are {} frames, which must be at most "
                    "half of all numbers",
                    bits, frames),
        "use a wider field, fewer packets per frame, or a smaller window and jump");
  }
  // After the last number comes 0. Unless whole frames fit, the sender and the assembler would disagree from then on
  // about the first packet of a frame. So many units do not come in a run: at 50 million per second they take 65 days.
  constexpr Wide kMaxUnits = Wide{1} << 48;
  const Wide numbers = Wide{1} << bits;
  const Wide frame = Wide{description.packets / description.packets_per_heap()} * description.step;
  if (numbers % frame != 0 && numbers / description.step < kMaxUnits) {
    return refused("seq",
                   fmt::format("a number of {} bits starts again at 0 in the middle of a frame: 2^{} is no multiple of "
                               "the {} numbers of a frame",
                               bits, bits, static_cast<std::uint64_t>(frame)),
                   "use a power of two for packets and step, or a wider field");
  }
  return {};
}

}  // namespace

std::uint32_t FrameDescription::packets_per_heap() const {
  if (format != HeaderFormat::spead || heap_bytes <= first_bytes) return 1;
  return 1 + (heap_bytes - first_bytes + payload_length - 1) / payload_length;
}

std::uint64_t FrameDescription::frame_bytes() const {
  if (format != HeaderFormat::spead) return std::uint64_t{packets} * payload_length;
  return std::uint64_t{packets / packets_per_heap()} * heap_bytes;
}

std::uint32_t FrameDescription::packet_bytes() const {
  switch (format) {
    case HeaderFormat::spead:
      return kSpeadHeader + payload_length;
    case HeaderFormat::vita49:
      return kVitaHeader + payload_length;
    case HeaderFormat::fixed:
      break;
  }
  return payload_offset + payload_length;
}

Result<FrameDescription> parse_frame_description(std::string_view text) {
  WARPLINE_TRY(const Entries entries, Entries::split(text));
  FrameDescription description;
  if (!entries.find("packets")) return refused("packets", "it is missing", fmt::format("write it like {}", kExample));
  WARPLINE_CHECK(entries.number("packets", 1, kMaxPackets, description.packets));
  WARPLINE_CHECK(read_format(entries, description));
  const bool counter = entries.find("format") == "counter";
  WARPLINE_CHECK(read_payload(entries, counter, description));
  if (const auto sequence = entries.find("seq")) {
    WARPLINE_TRY(description.sequence, field_of("seq", *sequence));
  } else if (description.format == HeaderFormat::fixed && !counter) {
    return refused("seq", "it is missing", fmt::format("write it like {}, or add a format", kExample));
  }
  WARPLINE_CHECK(entries.number("step", 1, kMaxStep, description.step));
  WARPLINE_CHECK(read_rate(entries, description));
  WARPLINE_CHECK(read_heaps(entries, description));
  WARPLINE_CHECK(read_streams(entries, description));
  WARPLINE_CHECK(entries.number("window", 1, kMaxWindow, description.window));
  description.jump = description.window;
  WARPLINE_CHECK(entries.number("jump", 1, kMaxJump, description.jump));
  WARPLINE_CHECK(entries.number("restart", 2, kMaxRestart, description.restart));
  WARPLINE_CHECK(check_field("seq", description.sequence, description));
  WARPLINE_CHECK(check_field("stream", description.stream_field, description));
  WARPLINE_CHECK(check_numbers(description));
  return description;
}

Result<void> check_queues(const FrameDescription& description, std::uint32_t queues) {
  if (queues <= 1 || description.stream == StreamKind::five_tuple) return {};
  return usage_error(fmt::format("cannot assemble frames on {} queues of a port", queues),
                     "each queue assembles frames by itself, and the port spreads packets over queues by 5-tuple, so "
                     "packets of one stream would be in several frames",
                     "use one pipeline, or add stream=5-tuple to the frame description");
}

std::string to_text(const FrameDescription& description) {
  const auto field = [](const NumberField& of) {
    return fmt::format("{}:{}{}", of.offset, of.bits, of.order == ByteOrder::little ? ":le" : "");
  };
  std::string text = fmt::format("packets={}", description.packets);
  const bool fixed = description.format == HeaderFormat::fixed;
  if (!fixed) text += fmt::format(",format={}", warpline::name(description.format));
  if (description.origin != FrameOrigin::udp) text += fmt::format(",from={}", warpline::name(description.origin));
  if (description.sequence.bits != 0) text += ",seq=" + field(description.sequence);
  text += fixed ? fmt::format(",payload={}:{}", description.payload_offset, description.payload_length)
                : fmt::format(",payload={}", description.payload_length);
  if (description.step != 1 || description.format == HeaderFormat::vita49)
    text += fmt::format(",step={}", description.step);
  if (description.rate != 0) text += fmt::format(",rate={}", description.rate);
  if (description.format == HeaderFormat::spead) {
    text += fmt::format(",heap={},first={}", description.heap_bytes, description.first_bytes);
  }
  text += fmt::format(",window={},jump={},restart={}", description.window, description.jump, description.restart);
  if (description.stream == StreamKind::five_tuple) text += ",stream=5-tuple";
  if (description.stream == StreamKind::field) text += ",stream=" + field(description.stream_field);
  if (description.stream != StreamKind::one) text += fmt::format(",streams={}", description.streams);
  return text;
}

}  // namespace warpline::flow
