// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace warpline {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};

constexpr std::array kCountSuffixes = {
    Suffix{"", 1},    Suffix{"K", 1e3},     Suffix{"k", 1e3},     Suffix{"M", 1e6},
    Suffix{"G", 1e9}, Suffix{"Ki", 0x1p10}, Suffix{"Mi", 0x1p20}, Suffix{"Gi", 0x1p30},
};
constexpr std::array kTimeSuffixes = {Suffix{"ns", 1}, Suffix{"us", 1e3}, Suffix{"ms", 1e6}, Suffix{"s", 1e9}};
constexpr std::array kBitSuffixes = {Suffix{"bit", 1}, Suffix{"kbit", 1e3}, Suffix{"mbit", 1e6}, Suffix{"gbit", 1e9}};
constexpr std::array kPacketSuffixes = {Suffix{"pps", 1}, Suffix{"kpps", 1e3}, Suffix{"mpps", 1e6},
                                        Suffix{"gpps", 1e9}};

struct Quantity {
  double number;
  std::string_view suffix;
};

Result<Quantity> split_quantity(std::string_view text, std::string_view example) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || !std::isfinite(number) || std::signbit(number)) {
    return usage_error(fmt::format("cannot read '{}'", text), "it is no non-negative number",
                       fmt::format("write it like {}", example));
  }
  return Quantity{number, text.substr(static_cast<std::size_t>(end - text.data()))};
}

const Suffix* find_suffix(std::span<const Suffix> known, std::string_view suffix) {
  const auto found = std::ranges::find(known, suffix, &Suffix::name);
  return found == known.end() ? nullptr : &*found;
}

Error unknown_suffix(std::string_view text, std::string_view suffix, std::string_view example) {
  return usage_error(fmt::format("cannot read '{}'", text), fmt::format("unknown unit '{}'", suffix),
                     fmt::format("write it like {}", example));
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// `value` with the largest suffix that keeps the number at 1 or more.
std::string with_suffix(double value, std::span<const Suffix> ascending) {
  const Suffix* best = &ascending.front();
  for (const Suffix& suffix : ascending) {
    if (value >= suffix.factor) best = &suffix;
  }
  return fmt::format("{}{}", value / best->factor, best->name);
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  constexpr std::string_view kExample = "64, 10K, 2Mi or 1.5G";
  std::uint64_t whole = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (failure == std::errc{} && end == text.data() + text.size()) return whole;
  WARPLINE_TRY(const Quantity quantity, split_quantity(text, kExample));
  const Suffix* suffix = find_suffix(kCountSuffixes, quantity.suffix);
  if (suffix == nullptr) return unknown_suffix(text, quantity.suffix, kExample);
  const double value = quantity.number * suffix->factor;
  if (value != std::floor(value)) return usage_error(fmt::format("cannot read '{}'", text), "it is no whole number");
  if (value >= 0x1p64) return usage_error(fmt::format("cannot read '{}'", text), "it does not fit 64 bits");
  return static_cast<std::uint64_t>(value);
}

Result<Bytes> parse_bytes(std::string_view text) {
  if (text.ends_with('B') && text.size() > 1) text.remove_suffix(1);
  WARPLINE_TRY(const std::uint64_t count, parse_count(text));
  return Bytes{count};
}

Result<Nanos> parse_nanos(std::string_view text, std::int64_t unit_nanos) {
  constexpr std::string_view kExample = "250ns, 10us, 1.5ms or 2s";
  WARPLINE_TRY(const Quantity quantity, split_quantity(text, kExample));
  double factor = static_cast<double>(unit_nanos);
  if (!quantity.suffix.empty()) {
    const Suffix* suffix = find_suffix(kTimeSuffixes, quantity.suffix);
    if (suffix == nullptr) return unknown_suffix(text, quantity.suffix, kExample);
    factor = suffix->factor;
  }
  const double nanos = std::round(quantity.number * factor);
  if (nanos >= 0x1p63) return usage_error(fmt::format("cannot read '{}'", text), "it is longer than 292 years");
  return Nanos{static_cast<std::int64_t>(nanos)};
}

Result<Rate> parse_rate(std::string_view text) {
  constexpr std::string_view kExample = "40gbit, 14.88Mpps or max";
  if (lower(text) == "max") return Rate{};
  WARPLINE_TRY(const Quantity quantity, split_quantity(text, kExample));
  const std::string suffix = lower(quantity.suffix);
  if (quantity.number == 0) return usage_error(fmt::format("cannot use rate '{}'", text), "nothing would ever be sent");
  if (const Suffix* bits = find_suffix(kBitSuffixes, suffix)) return Rate{BitRate{quantity.number * bits->factor}};
  if (const Suffix* packets = find_suffix(kPacketSuffixes, suffix)) {
    return Rate{PacketRate{quantity.number * packets->factor}};
  }
  return unknown_suffix(text, quantity.suffix, kExample);
}

std::string to_string(Nanos value) {
  for (const Suffix& suffix : {kTimeSuffixes[3], kTimeSuffixes[2], kTimeSuffixes[1]}) {
    const auto factor = static_cast<std::int64_t>(suffix.factor);
    if (value.value != 0 && value.value % factor == 0) return fmt::format("{}{}", value.value / factor, suffix.name);
  }
  return fmt::format("{}ns", value.value);
}

std::string to_string(const Rate& rate) {
  if (const auto* bits = std::get_if<BitRate>(&rate)) return with_suffix(bits->value, kBitSuffixes);
  if (const auto* packets = std::get_if<PacketRate>(&rate)) return with_suffix(packets->value, kPacketSuffixes);
  return "max";
}

std::string humanize(double value) {
  constexpr std::array kScale = {Suffix{" G", 1e9}, Suffix{" M", 1e6}, Suffix{" k", 1e3}};
  for (const Suffix& suffix : kScale) {
    if (value < suffix.factor) continue;
    const double scaled = value / suffix.factor;
    return fmt::format("{:.{}f}{}", scaled, scaled < 10 ? 2 : 1, suffix.name);
  }
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace warpline
