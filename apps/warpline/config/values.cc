// SPDX-License-Identifier: Apache-2.0
#include "config/values.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

constexpr std::uint64_t kLeastFrame = 60;       // Ethernet's 64 bytes without FCS
constexpr std::uint64_t kGreatestFrame = 9014;  // an MTU of 9000
constexpr std::uint64_t kLeastSplit = 22;       // an Ethernet header with two VLAN tags stays in one piece
constexpr std::uint64_t kDefaultSplit = 60;

Error out_of_range(std::string_view text, std::string_view min, std::string_view max) {
  return usage_error(fmt::format("cannot use '{}'", text), fmt::format("it is not within {}..{}", min, max),
                     fmt::format("use {} to {}", min, max));
}

/// Bytes of the UTF-8 sequence that `text` begins with (RFC 3629 section 4), 0 when it begins with none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

Result<void> check_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) {
      return usage_error("cannot use the value", fmt::format("byte {} of it is the control character 0x{:02x}", i, c),
                         "leave it out");
    }
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      return usage_error("cannot use the value", fmt::format("byte {} of it (0x{:02x}) is no UTF-8", i, c),
                         "write it as UTF-8");
    }
    i += length;
  }
  return {};
}

Result<std::uint64_t> parse_bounded(std::string_view text, std::uint64_t min, std::uint64_t max) {
  WARPLINE_TRY(const std::uint64_t value, parse_count(text));
  if (value < min || value > max) return out_of_range(text, std::to_string(min), std::to_string(max));
  return value;
}

Result<std::uint64_t> parse_power_of_two(std::string_view text, std::uint64_t min, std::uint64_t max) {
  WARPLINE_TRY(const std::uint64_t value, parse_bounded(text, min, max));
  if (std::has_single_bit(value)) return value;
  return usage_error(fmt::format("cannot use '{}'", text), "it is no power of two",
                     fmt::format("the next is {}", std::min(std::bit_ceil(value), max)));
}

Result<Nanos> parse_bounded_nanos(std::string_view text, std::int64_t unit, Nanos min, Nanos max) {
  WARPLINE_TRY(const Nanos value, parse_nanos(text, unit));
  if (value < min || value > max) return out_of_range(text, to_string(min), to_string(max));
  return value;
}

Result<bool> parse_bool(std::string_view text) {
  for (const std::string_view yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return usage_error(fmt::format("cannot read '{}'", text), "it is neither true nor false", "write true or false");
}

Result<Rate> parse_bounded_rate(std::string_view text) {
  constexpr double kMin = 1;
  constexpr double kMax = 1e15;
  WARPLINE_TRY(const Rate rate, parse_rate(text));
  double value = kMin;
  if (const auto* bits = std::get_if<BitRate>(&rate)) value = bits->value;
  if (const auto* packets = std::get_if<PacketRate>(&rate)) value = packets->value;
  if (!(value >= kMin && value <= kMax)) return out_of_range(text, "1", "1e15 a second");
  return rate;
}

Result<double> parse_per_second(std::string_view text) {
  constexpr double kMax = 1e12;
  double value = 0;
  if (text.ends_with("pps")) {
    WARPLINE_TRY(const Rate rate, parse_rate(text));
    value = std::get<PacketRate>(rate).value;
  } else {
    WARPLINE_TRY(const std::uint64_t count, parse_count(text));
    value = static_cast<double>(count);
  }
  if (!(value >= 1 && value <= kMax)) return out_of_range(text, "1", "1e12 a second");
  return value;
}

Result<double> parse_ratio(std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = text.substr(0, text.size() - (percent ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return usage_error(fmt::format("cannot use '{}'", text), "it is no part of a whole", "write 0.005 or 0.5%");
  }
  if (percent) value /= 100;
  if (!(value >= 0 && value < 1)) return out_of_range(text, "0", "below 1");
  return value;
}

std::string exact_text(const Rate& rate) {
  std::string shortest = to_string(rate);
  if (const auto parsed = parse_rate(shortest); parsed.ok() && *parsed == rate) return shortest;
  if (const auto* bits = std::get_if<BitRate>(&rate)) return fmt::format("{}bit", bits->value);
  return fmt::format("{}pps", std::get<PacketRate>(rate).value);
}

Result<std::vector<std::uint8_t>> parse_hex(std::string_view text) {
  constexpr std::size_t kMaxBytes = 128;
  if (text == "driver") return std::vector<std::uint8_t>{};
  const auto refuse = [&](std::string why) {
    return usage_error(fmt::format("cannot read '{}'", text), std::move(why), "write it like 6d5a56da255b0ec2");
  };
  if (text.empty() || text.size() % 2 != 0) return refuse("it is no even number of hexadecimal digits");
  if (text.size() > 2 * kMaxBytes) return refuse(fmt::format("it is longer than {} bytes", kMaxBytes));
  std::vector<std::uint8_t> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    const auto [end, failure] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (failure != std::errc{} || end != digits + 2) return refuse("it has other characters than hexadecimal digits");
  }
  return bytes;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  return bytes.empty() ? "driver" : fmt::format("{:02x}", fmt::join(bytes, ""));
}

Result<std::vector<std::string>> parse_names(std::span<const std::string> texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
    if (text.empty() || !std::ranges::all_of(text, plain)) {
      return usage_error(fmt::format("cannot read '{}'", text), "a name has lower-case letters, digits, '_' and '-'",
                         "write it like ipv4_cksum");
    }
    if (std::ranges::find(names, text) != names.end()) {
      return usage_error(fmt::format("cannot use '{}'", text), "it is named twice", "leave one out");
    }
    names.push_back(text);
  }
  return names;
}

Result<std::uint64_t> parse_split(std::string_view text) {
  if (text == "on") return kDefaultSplit;
  if (text == "off" || text == "0") return std::uint64_t{0};
  return parse_bounded(text, kLeastSplit, kGreatestFrame);
}

Result<std::string> parse_frame_size(std::string_view text) {
  if (text == "imix") return std::string(text);
  WARPLINE_TRY(const std::uint64_t bytes, parse_bounded(text, kLeastFrame, kGreatestFrame));
  return std::to_string(bytes);
}

Result<std::size_t> parse_choice(std::string_view text, const std::vector<std::string_view>& known) {
  if (const auto found = std::ranges::find(known, text); found != known.end()) {
    return static_cast<std::size_t>(found - known.begin());
  }
  const std::string choices = fmt::format("{}", fmt::join(known, ", "));
  return usage_error(
      fmt::format("cannot use '{}'", text), fmt::format("it is none of {}", choices),
      fmt::format("did you mean '{}'?", nearest(text, std::vector<std::string>(known.begin(), known.end()))));
}

}  // namespace warpline::config
