// SPDX-License-Identifier: Apache-2.0
#include "vnic/args/fault_args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <variant>
#include <vector>

#include "warpline/base/nearest.h"
#include "warpline/base/units.h"

namespace warpline::vnic {
namespace {

// What a value may be, and where it goes.
struct Probability {
  double FaultConfig::* member;
};
struct Duration {
  std::uint64_t FaultConfig::* member;
};
struct LineRate {
  std::uint64_t FaultConfig::* member;
};
template <typename T>
struct Number {
  T FaultConfig::* member;
  std::uint64_t least;
  std::uint64_t most;
};
using Number32 = Number<std::uint32_t>;
using Number64 = Number<std::uint64_t>;

struct FaultKey {
  std::string_view name;
  std::variant<Probability, Duration, LineRate, Number32, Number64> field;
};

constexpr std::uint64_t kMax32 = UINT32_MAX;
constexpr std::uint64_t kMaxFlap = std::uint64_t{1} << 62;
constexpr FaultKey kFaultKeys[] = {
    {"loss", Probability{&FaultConfig::loss}},
    {"burst_loss_enter", Probability{&FaultConfig::burst_loss_enter}},
    {"burst_loss_leave", Probability{&FaultConfig::burst_loss_leave}},
    {"burst_loss", Probability{&FaultConfig::burst_loss}},
    {"duplicate", Probability{&FaultConfig::duplicate}},
    {"reorder", Probability{&FaultConfig::reorder}},
    {"reorder_depth", Number32{&FaultConfig::reorder_depth, 1, Faults::kMaxReorderDepth}},
    {"corrupt", Probability{&FaultConfig::corrupt}},
    {"truncate", Probability{&FaultConfig::truncate}},
    {"delay", Duration{&FaultConfig::delay_nanos}},
    {"jitter", Duration{&FaultConfig::jitter_nanos}},
    {"rate", LineRate{&FaultConfig::bits_per_s}},
    {"queue_bytes", Number32{&FaultConfig::queue_bytes, 1, kMax32}},
    {"ecn_bytes", Number32{&FaultConfig::ecn_bytes, 0, kMax32}},
    {"stall", Probability{&FaultConfig::stall}},
    {"rx_out", Probability{&FaultConfig::rx_out}},
    {"tx_full", Probability{&FaultConfig::tx_full}},
    {"flap_frames", Number64{&FaultConfig::flap_frames, 0, kMaxFlap}},
    {"flap_lost", Number64{&FaultConfig::flap_lost, 1, kMaxFlap}},
    {"reset_frames", Number64{&FaultConfig::reset_frames, 0, kMaxFlap}},
};

const FaultKey* find_key(std::string_view name) {
  for (const FaultKey& key : kFaultKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

struct Setter {
  FaultConfig& config;
  std::string_view key;
  std::string_view text;

  [[nodiscard]] Error refuse(std::string why, std::string fix = {}) const {
    return usage_error(fmt::format("cannot set {}={}", key, text), std::move(why), std::move(fix));
  }

  Result<void> operator()(Probability to) const {
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= 1)) {
      return refuse("it is no probability", "give a number from 0 to 1");
    }
    config.*to.member = value;
    return {};
  }

  Result<void> operator()(Duration to) const {
    constexpr std::int64_t kLongest = 3'600'000'000'000;
    WARPLINE_TRY(const Nanos nanos, parse_nanos(text, 1000));
    if (nanos.value > kLongest) return refuse("it is longer than an hour");
    config.*to.member = static_cast<std::uint64_t>(nanos.value);
    return {};
  }

  Result<void> operator()(LineRate to) const {
    constexpr double kFastest = 1e15;
    WARPLINE_TRY(const Rate rate, parse_rate(text));
    if (std::holds_alternative<PacketRate>(rate)) {
      return refuse("a wire is limited in bits, not in packets", "write it like 10gbit");
    }
    const auto* bits = std::get_if<BitRate>(&rate);
    const double value = bits == nullptr ? 0 : std::round(bits->value);
    if (value > kFastest || (bits != nullptr && value < 1)) return refuse("it is not between 1bit and 1000000gbit");
    config.*to.member = static_cast<std::uint64_t>(value);
    return {};
  }

  template <typename T>
  Result<void> operator()(Number<T> to) const {
    WARPLINE_TRY(const Bytes count, parse_bytes(text));
    if (count.value < to.least || count.value > to.most) {
      return refuse(fmt::format("it is not between {} and {}", to.least, to.most));
    }
    config.*to.member = static_cast<T>(count.value);
    return {};
  }
};

struct Printer {
  const FaultConfig& config;

  std::string operator()(Probability from) const { return fmt::format("{}", config.*from.member); }
  std::string operator()(Duration from) const {
    return warpline::to_string(Nanos{static_cast<std::int64_t>(config.*from.member)});
  }
  std::string operator()(LineRate from) const {
    const std::uint64_t bits = config.*from.member;
    return warpline::to_string(bits == 0 ? Rate{} : Rate{BitRate{static_cast<double>(bits)}});
  }
  template <typename T>
  std::string operator()(Number<T> from) const {
    return fmt::format("{}", config.*from.member);
  }
};

}  // namespace

std::span<const std::string> fault_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const FaultKey& key : kFaultKeys) all.emplace_back(key.name);
    return all;
  }();
  return names;
}

bool is_fault_key(std::string_view key) { return find_key(key) != nullptr; }

Result<void> set_fault(FaultConfig& config, std::string_view key, std::string_view value) {
  const FaultKey* known = find_key(key);
  if (known == nullptr) {
    return usage_error(fmt::format("unknown fault '{}'", key),
                       fmt::format("there are {}", fmt::join(fault_keys(), ", ")),
                       fmt::format("did you mean '{}'?", nearest(key, fault_keys())));
  }
  return std::visit(Setter{config, key, value}, known->field);
}

std::string to_string(const FaultConfig& config) {
  std::string text;
  for (const FaultKey& key : kFaultKeys) {
    const std::string value = std::visit(Printer{config}, key.field);
    if (value == std::visit(Printer{FaultConfig{}}, key.field)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.name, value);
  }
  return text;
}

}  // namespace warpline::vnic
