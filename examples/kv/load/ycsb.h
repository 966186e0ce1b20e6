// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "warpline/base/random.h"

/// The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, table 2).
namespace ycsb {

enum class Kind : std::uint8_t { read, update, insert, scan, read_modify_write };

/// Which operations a workload has, in percent, and which records they are for.
struct Mix {
  char name;
  std::array<unsigned, 5> percent;  ///< of each Kind
  bool latest = false;              ///< the newest records most, instead of the same few ones
};

inline constexpr std::array<Mix, 6> kMixes{{
    {'A', {50, 50, 0, 0, 0}},
    {'B', {95, 5, 0, 0, 0}},
    {'C', {100, 0, 0, 0, 0}},
    {'D', {95, 0, 5, 0, 0}, true},
    {'E', {0, 0, 5, 95, 0}},
    {'F', {50, 0, 0, 0, 50}},
}};

inline std::optional<Mix> mix_of(std::string_view name) {
  for (const Mix& mix : kMixes)
    if (name.size() == 1 && name[0] == mix.name) return mix;
  return std::nullopt;
}

/// Ranks from 0 on, the lower the likelier, as Zipf's law has it with an exponent of 0.99 (Gray et al., "Quickly
/// Generating Billion-Record Synthetic Databases", SIGMOD 1994).
class Zipf {
 public:
  explicit Zipf(std::uint64_t count) : count_(static_cast<double>(count)) {
    for (std::uint64_t i = 1; i <= count; ++i) zeta_ += std::pow(1.0 / static_cast<double>(i), kTheta);
    const double two = 1 + std::pow(0.5, kTheta);
    eta_ = (1 - std::pow(2 / count_, 1 - kTheta)) / (1 - two / zeta_);
  }

  [[nodiscard]] std::uint64_t rank(warpline::Random& random) const {
    const double u = static_cast<double>(random.next() >> 11) * 0x1p-53;
    if (u * zeta_ < 1) return 0;
    if (u * zeta_ < 1 + std::pow(0.5, kTheta)) return 1;
    return static_cast<std::uint64_t>(count_ * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kTheta)));
  }

 private:
  static constexpr double kTheta = 0.99;
  double count_;
  double zeta_ = 0;
  double eta_ = 0;
};

/// What is to be done next.
struct Step {
  Kind kind = Kind::read;
  std::uint64_t record = 0;
  std::uint32_t count = 1;  ///< of a scan
};

/// Draws a workload's operations over `records` that are there, 2 at least. The same seed gives the same ones.
class Workload {
 public:
  Workload(const Mix& mix, std::uint64_t records, std::uint64_t seed)
      : mix_(mix), random_(seed), zipf_(records), first_(records), next_(records) {}

  Step next() {
    std::uint64_t die = random_.next() % 100;
    std::size_t kind = 0;
    while (die >= mix_.percent[kind]) die -= mix_.percent[kind++];
    Step step{static_cast<Kind>(kind)};
    if (step.kind == Kind::insert) {
      step.record = next_++;
    } else {
      const std::uint64_t rank = zipf_.rank(random_) % first_;
      step.record = mix_.latest ? next_ - 1 - rank : warpline::mix64(rank) % first_;
    }
    if (step.kind == Kind::scan) step.count = 1 + static_cast<std::uint32_t>(random_.next() % 100);
    return step;
  }

 private:
  Mix mix_;
  warpline::Random random_;
  Zipf zipf_;
  std::uint64_t first_;  ///< records before any was inserted
  std::uint64_t next_;   ///< the next one to be inserted
};

/// A record's key: "user" and 12 digits.
inline std::string key_of(std::uint64_t record) {
  std::string key = "user000000000000";
  std::array<char, 20> digits;
  const auto* end = std::to_chars(digits.data(), digits.data() + digits.size(), record).ptr;
  const auto length = static_cast<std::size_t>(end - digits.data());
  std::memcpy(key.data() + key.size() - length, digits.data(), length);
  return key;
}

/// Writes a value that says, in each of its bytes, of which record and of which writing it is: `value` has 16 at least.
inline void fill(std::string& value, std::uint64_t record, std::uint64_t version) {
  std::memcpy(value.data(), &version, sizeof version);
  const std::uint64_t seed = warpline::mix64(record ^ warpline::mix64(version));
  for (std::size_t at = sizeof version; at < value.size(); at += sizeof seed) {
    const std::uint64_t word = seed + at * 0x9e3779b97f4a7c15U;
    std::memcpy(value.data() + at, &word, std::min(sizeof word, value.size() - at));
  }
}

/// Whether `value` is one that fill() made of `record`, and as long as it should be.
inline bool is_of(std::string_view value, std::uint64_t record, std::size_t length) {
  if (value.size() != length) return false;
  std::uint64_t version;
  std::memcpy(&version, value.data(), sizeof version);
  const std::uint64_t seed = warpline::mix64(record ^ warpline::mix64(version));
  std::uint64_t wrong = 0;
  for (std::size_t at = sizeof version; at < length; at += sizeof seed) {
    const std::uint64_t word = seed + at * 0x9e3779b97f4a7c15U;
    std::uint64_t seen = word;
    std::memcpy(&seen, value.data() + at, std::min(sizeof seen, length - at));
    wrong |= seen ^ word;
  }
  return wrong == 0;
}

}  // namespace ycsb
