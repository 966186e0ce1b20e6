// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "warpline/base/statistics/run_totals.h"

namespace warpline::metrics {

/// What a family's values are, in terms of OpenMetrics.
enum class FamilyKind : std::uint8_t {
  counter,  ///< only grows, from the start of the process
  gauge,    ///< goes up and down
  info,     ///< always 1: its labels say something
  summary,  ///< quantiles, and how many values they are of
};

using Labels = std::vector<std::pair<std::string_view, std::string>>;  ///< name and value of each
using Value = std::variant<std::uint64_t, double>;

/// Values of one name.
struct Family {
  struct Sample {
    Labels labels;
    Value value;
  };
  struct Measured {
    Labels labels;
    LatencyTotals times;
  };
  std::string name;  ///< begins with "warpline_"; ends with its unit, if it has one, and never with "_total" or "_info"
  FamilyKind kind;
  std::string_view unit;  ///< "bytes", "seconds", ...; empty: none
  std::string_view help;  ///< one sentence without its full stop
  std::vector<Sample> samples;
  std::vector<Measured> measured;  ///< of a summary

  /// Adds a value; `labels` are of no other sample of this family.
  Family& with(Value value, Labels labels = {}) {
    samples.push_back({std::move(labels), value});
    return *this;
  }
};

/// What a process has counted up to some moment, by families in the order that they were added.
class Snapshot {
 public:
  /// Returns the family of that name, added if it is not there yet. Stays where it is.
  Family& family(std::string_view name, FamilyKind kind, std::string_view unit, std::string_view help);
  Family& counter(std::string_view name, std::string_view unit, std::string_view help) {
    return family(name, FamilyKind::counter, unit, help);
  }
  Family& gauge(std::string_view name, std::string_view unit, std::string_view help) {
    return family(name, FamilyKind::gauge, unit, help);
  }
  /// Adds the quantiles of a time, if it was measured at all.
  void summary(std::string_view name, std::string_view help, const LatencyTotals& times, Labels labels = {});

  [[nodiscard]] const std::deque<Family>& families() const { return families_; }

 private:
  std::deque<Family> families_;
};

/// Adds what every process has: processor time, memory, open files, when it started, and `labels` about its build.
void add_process(Snapshot& snapshot, Labels build);

}  // namespace warpline::metrics
