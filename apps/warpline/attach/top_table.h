// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "attach/sample.h"
#include "warpline/base/enum_names.h"

namespace warpline::attach {

/// What a row of the table of `top` is about.
enum class RowKind : std::uint8_t { run, port, queue, engine, session, drop };
constexpr auto names_of(RowKind) { return enum_names<RowKind>({"run", "port", "queue", "engine", "session", "drop"}); }

/// How the rows of a kind are ordered.
enum class SortBy : std::uint8_t { name, rate, total };
constexpr auto names_of(SortBy) { return enum_names<SortBy>({"name", "rate", "total"}); }

/// One thing that is counted.
struct TopRow {
  RowKind kind;
  std::string name;                       ///< "net_vnic0 received"
  double total = 0;                       ///< since the run began; of a session what there is now
  double per_s = 0;                       ///< between the last two samples
  std::optional<double> bits_per_s = {};  ///< where bytes are counted: of frames without FCS
  std::vector<double> history = {};       ///< per_s of the last samples, oldest first
};

/// A `TopTable` makes rows with rates out of samples. What a run never counts, and what never happened of drops and
/// errors, has no row.
class TopTable {
 public:
  static constexpr std::size_t kHistory = 20;  ///< samples whose rates are kept

  void add(const Sample& sample);
  /// Returns the rows, kind by kind.
  [[nodiscard]] std::vector<TopRow> rows(SortBy sort) const;
  /// Returns the rows by name, as raw SI numbers.
  [[nodiscard]] nlohmann::ordered_json to_json() const;

 private:
  struct Series {
    double total = 0;
    double per_s = 0;
    std::optional<double> bytes = {};  ///< since the run began
    std::optional<double> bits_per_s = {};
    std::deque<double> history = {};
    bool seen = false;  ///< in a sample before
  };
  using Key = std::pair<RowKind, std::string>;

  std::map<Key, Series> series_;
  std::optional<double> last_s_;  ///< when the last sample was taken
};

}  // namespace warpline::attach
