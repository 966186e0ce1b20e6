// SPDX-License-Identifier: Apache-2.0
#include "page/text/unit.h"

#include <utility>

namespace warpline::page {
namespace {

constexpr std::pair<std::string_view, std::string_view> kSuffixes[] = {
    {"_gbps", "Gbit/s"},
    {"_gbps_l1", "Gbit/s"},
    {"_gbps_l2", "Gbit/s"},
    {"_mpps", "Mpps"},
    {"_bytes", "bytes"},
    {"_per_s", "per second"},
    {"_ns", "ns"},
    {"_us", "us"},
    {"_ms", "ms"},
    {"_s", "s"},
    {"_per_packet", "per packet"},
};
constexpr std::pair<std::string_view, std::string_view> kWhole[] = {
    {"mpps", "Mpps"},
    {"gbps", "Gbit/s"},
    {"seconds", "s"},
    {"nanoseconds", "ns"},
    {"loss", "part of all packets"},
    {"lost", "part of all packets"},
};
constexpr std::pair<std::string_view, std::string_view> kBeginnings[] = {
    {"ns_per_packet", "ns per packet"}, {"cycles_per_packet", "cycles per packet"}, {"gbps_l", "Gbit/s"}};

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::string unit_in(std::string_view key) {
  for (const auto& [beginning, unit] : kBeginnings) {
    if (key.starts_with(beginning)) return std::string(unit);
  }
  if (key.ends_with("cycles_per_packet")) return "cycles per packet";
  for (const auto& [suffix, unit] : kSuffixes) {
    if (key.ends_with(suffix)) return std::string(unit);
  }
  for (const auto& [whole, unit] : kWhole) {
    if (key == whole) return std::string(unit);
  }
  return "";
}

bool is_ratio(std::string_view key) {
  return holds(key, "ratio") || holds(key, "_to_") || holds(key, "_of_") || key == "control";
}

std::string unit_of(std::string_view key, const std::string& around) {
  if (const std::string named = unit_in(key); !named.empty()) return named;
  if (is_ratio(key)) return holds(around, " / ") ? around : "ratio";
  return around;
}

}  // namespace warpline::page
