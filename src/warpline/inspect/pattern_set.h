// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/host_device.h"
#include "warpline/base/result.h"

namespace warpline::inspect {

/// The automaton of a PatternSet, for host or device: whoever made it owns what it points to. State 0 is that of no
/// bytes at all.
struct PatternTable {
  const std::uint8_t* classes = nullptr;   ///< of each of the 256 values of a byte
  const std::uint16_t* next = nullptr;     ///< state by state: its successor by each class
  const std::uint16_t* ends = nullptr;     ///< of each state: 1 + the longest pattern that ends in it; 0: none
  const std::uint16_t* shorter = nullptr;  ///< of each state: the one whose `ends` is the next shorter; 0: none
  std::uint32_t class_count = 0;           ///< successors of a state
  std::uint32_t longest = 0;               ///< bytes of the longest pattern
};

/// Patterns of bytes that are searched for at once (Aho, Corasick: "Efficient string matching", 1975), as a table with
/// a successor for each state and byte. Immutable; any thread.
class PatternSet {
 public:
  static constexpr std::size_t kMostStates = 65'535;

  /// Patterns are numbered as they come; equal ones have the number of the first. Usage errors: none, an empty one, or
  /// more bytes in all of them than kMostStates.
  [[nodiscard]] static Result<PatternSet> create(std::span<const std::string> patterns);

  /// Returns the automaton in host memory; as long as the set.
  [[nodiscard]] PatternTable table() const;
  [[nodiscard]] std::size_t states() const { return ends_.size(); }  ///< of the automaton
  [[nodiscard]] std::size_t patterns() const { return patterns_; }   ///< as given
  /// Returns the arrays of the table, in its order, to be copied elsewhere; as long as the set.
  [[nodiscard]] std::span<const std::uint8_t> classes() const { return classes_; }
  [[nodiscard]] std::span<const std::uint16_t> next() const { return next_; }
  [[nodiscard]] std::span<const std::uint16_t> ends() const { return ends_; }
  [[nodiscard]] std::span<const std::uint16_t> shorter() const { return shorter_; }

 private:
  void find_classes(std::span<const std::string> patterns);
  void add(std::string_view pattern, std::uint16_t number);
  void link();

  std::vector<std::uint8_t> classes_ = std::vector<std::uint8_t>(256);
  std::vector<std::uint16_t> next_;
  std::vector<std::uint16_t> ends_;
  std::vector<std::uint16_t> shorter_;
  std::uint32_t class_count_ = 1;  ///< class 0: bytes that are in no pattern
  std::uint32_t longest_ = 0;
  std::size_t patterns_ = 0;
};

/// Takes the bytes behind `state` and calls `found(pattern)` for every pattern that ends in them. Returns the state
/// behind the last one.
template <typename Found>
WARPLINE_HD std::uint16_t scan(const PatternTable& table, std::uint16_t state, const std::uint8_t* bytes,
                               std::uint64_t count, Found found) {
  for (std::uint64_t i = 0; i < count; ++i) {
    state = table.next[state * table.class_count + table.classes[bytes[i]]];
    if (table.ends[state] == 0) continue;
    for (std::uint16_t at = state; at != 0; at = table.shorter[at]) found(table.ends[at] - 1U);
  }
  return state;
}

/// Bytes that one thread looks through on behalf of a part of a piece.
struct ScanPart {
  std::uint64_t begin = 0;    ///< of the part, in the piece
  std::uint64_t end = 0;      ///< of the part, in the piece
  std::uint64_t warm_up = 0;  ///< where the automaton begins: at the piece's state if 0, else at state 0
};

/// Returns what is to be read so that the part `[begin, end)` of a piece can be searched without those before it: as
/// many bytes before it as the longest pattern has, but one, or the state that the piece begins in.
[[nodiscard]] WARPLINE_HD inline ScanPart part_of(const PatternTable& table, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t before = table.longest - 1;
  return {begin, end, begin > before ? begin - before : 0};
}

/// Searches one part of a piece that begins in `state`; parts may be searched in any order, and find together what
/// scan() of the piece does. Returns the state behind the part.
template <typename Found>
WARPLINE_HD std::uint16_t scan_part(const PatternTable& table, const ScanPart& part, std::uint16_t state,
                                    const std::uint8_t* piece, Found found) {
  const std::uint16_t first = part.warm_up == 0 ? state : std::uint16_t{0};
  const std::uint16_t warm = scan(table, first, piece + part.warm_up, part.begin - part.warm_up, [](std::uint32_t) {});
  return scan(table, warm, piece + part.begin, part.end - part.begin, found);
}

}  // namespace warpline::inspect
