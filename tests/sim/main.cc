// SPDX-License-Identifier: Apache-2.0
// warpline_sim --seed N: one scenario, with all that happens. --seeds A..B: many, and which of them fail. --moving N,
// --moving A..B: the same with a host that has another address now and then.
// warpline_sim incast | loss | one-loss | sharing: figures of one question each.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "sim/reports.h"
#include "sim/scenario.h"

namespace warpline::sim {
namespace {

constexpr int kUsage = 2;
constexpr int kVerification = 4;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool run_one(std::uint64_t seed, bool trace, bool moving) {
  const Scenario scenario = moving ? draw_moving_scenario(seed) : draw_scenario(seed);
  if (trace) fmt::print("{}", describe(scenario));
  const Outcome outcome = run(scenario, trace);
  if (trace || outcome.failure_count > 0) {
    if (!trace) fmt::print("{}", describe(scenario));
    fmt::print("  {}; {:.3f} s of virtual time\n", outcome.summary, outcome.virtual_seconds);
  }
  for (const std::string& failure : outcome.failures) fmt::print("  FAILED {}\n", failure);
  if (outcome.failure_count > 0) {
    fmt::print("  {} failures; again, with all that happens: warpline_sim --{} {}\n", outcome.failure_count,
               moving ? "moving" : "seed", seed);
  }
  std::fflush(stdout);
  return outcome.failure_count == 0;
}

int run_many(std::uint64_t first, std::uint64_t last, bool moving) {
  std::uint64_t failed = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) failed += run_one(seed, false, moving) ? 0 : 1;
  fmt::print("{} seeds, {} failed\n", last - first + 1, failed);
  return failed == 0 ? 0 : kVerification;
}

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  if (count == 2 && what == "incast") return print_incast();
  if (count == 2 && what == "sharing") return print_sharing();
  if (count == 2 && what == "loss") return print_loss();
  if (count == 2 && what == "one-loss") return print_one_loss();
  const bool moving = what == "--moving";
  if (count == 3 && (what == "--seed" || moving)) {
    if (const auto seed = number(words[2])) return run_one(*seed, true, moving) ? 0 : kVerification;
  }
  if (count == 3 && (what == "--seeds" || moving)) {
    const std::string_view range = words[2];
    const std::size_t dots = range.find("..");
    const auto first = number(range.substr(0, dots));
    const auto last = dots == std::string_view::npos ? std::nullopt : number(range.substr(dots + 2));
    if (first && last && *first <= *last) return run_many(*first, *last, moving);
  }
  fmt::print(stderr,
             "usage: warpline_sim --seed N | --seeds A..B | --moving N | --moving A..B | incast | loss | one-loss | "
             "sharing\n");
  return kUsage;
}

}  // namespace
}  // namespace warpline::sim

int main(int count, char** words) { return warpline::sim::main(count, words); }
