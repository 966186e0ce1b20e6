// SPDX-License-Identifier: Apache-2.0
// warpline_stream_sim --seeds A..B: scenarios of everything, and which of them fail; --queues A..B: the same with every
// receiver's frames taken out of queues; --seed N, --queued N: one, told of. --places A..B, --place N: many connections
// at the few places of a receiver, in all paths. --senders A..B, --sender N: the same for a sender.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "places/places_run.h"
#include "places/sender_run.h"
#include "simulation.h"

namespace warpline::stream {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

enum class Kind : std::uint8_t { wires, queues, places, senders };

bool run_all_paths(std::uint64_t seed, bool tell) {
  bool right = true;
  for (const ReceiverPath path : kReceiverPaths) {
    const PlacesOutcome outcome = run_places(seed, path);
    if (tell || !outcome.failure.empty()) {
      fmt::print("seed {}, {}: {} connections, {} bytes\n", seed, name_of(path), outcome.opened, outcome.bytes);
    }
    if (outcome.failure.empty()) continue;
    fmt::print("  FAILED {}\n", outcome.failure);
    right = false;
  }
  std::fflush(stdout);
  return right;
}

bool run_one_sender(std::uint64_t seed, bool tell) {
  const SenderOutcome outcome = run_sender(seed);
  if (tell || !outcome.failure.empty()) {
    fmt::print("seed {}: {} connections, {} finished, {} bytes, {} segments again\n", seed, outcome.started,
               outcome.finished, outcome.bytes, outcome.retransmitted);
  }
  if (!outcome.failure.empty()) fmt::print("  FAILED {}\n", outcome.failure);
  std::fflush(stdout);
  return outcome.failure.empty();
}

bool run_one(std::uint64_t seed, Kind kind, bool tell) {
  if (kind == Kind::senders) return run_one_sender(seed, tell);
  if (kind == Kind::places) return run_all_paths(seed, tell);
  StreamScenario scenario = draw_stream_scenario(seed);
  if (kind == Kind::queues) scenario.lane = scenario.lane_queues = true;
  const StreamOutcome outcome = run(scenario);
  if (tell || !outcome.failures.empty()) {
    fmt::print("{}  {} frames, {} segments again, {} timeouts, {:.3f} s of virtual time\n", describe(scenario),
               outcome.frames, outcome.retransmitted, outcome.timeouts, outcome.seconds);
  }
  for (const std::string& failure : outcome.failures) fmt::print("  FAILED {}\n", failure);
  std::fflush(stdout);
  return outcome.failures.empty();
}

int main(int count, char** words) {
  constexpr int kUsage = 2;
  constexpr int kVerification = 4;
  const std::string_view what = count == 3 ? words[1] : "";
  const std::string_view range = count == 3 ? words[2] : "";
  Kind kind = Kind::wires;
  if (what.starts_with("--queue")) kind = Kind::queues;
  if (what.starts_with("--place")) kind = Kind::places;
  if (what.starts_with("--sender")) kind = Kind::senders;
  if (what == "--seed" || what == "--queued" || what == "--place" || what == "--sender") {
    if (const auto seed = number(range)) return run_one(*seed, kind, true) ? 0 : kVerification;
  }
  if (what == "--seeds" || what == "--queues" || what == "--places" || what == "--senders") {
    const std::size_t dots = range.find("..");
    const auto first = number(range.substr(0, dots));
    const auto last = dots == std::string_view::npos ? std::nullopt : number(range.substr(dots + 2));
    if (first && last && *first <= *last) {
      std::uint64_t failed = 0;
      for (std::uint64_t seed = *first; seed <= *last; ++seed) failed += run_one(seed, kind, false) ? 0 : 1;
      fmt::print("{} seeds, {} failed\n", *last - *first + 1, failed);
      return failed == 0 ? 0 : kVerification;
    }
  }
  fmt::print(stderr,
             "usage: warpline_stream_sim --seed N | --seeds A..B | --queued N | --queues A..B | --place N | "
             "--places A..B | --sender N | --senders A..B\n");
  return kUsage;
}

}  // namespace
}  // namespace warpline::stream

int main(int count, char** words) { return warpline::stream::main(count, words); }
