// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/chance.h"
#include "simulation.h"

namespace warpline::stream {

using sim::chance;

bool may_outlast_cookies(const StreamScenario& scenario) {
  // A burst of losses lasts a number of frames, and retransmissions become rare: nine in a row take more than 128 s.
  const bool bursts = scenario.wire.burst_begin > 0;
  return scenario.wire.loss >= 0.2 || bursts || scenario.congestion == CongestionKind::fixed;
}

StreamScenario draw_stream_scenario(std::uint64_t seed) {
  Random random(seed);
  StreamScenario scenario;
  scenario.seed = seed;
  const auto one_of = [&](auto first, auto... others) {
    const decltype(first) all[] = {first, others...};
    return all[random.below(1 + sizeof...(others))];
  };
  constexpr std::int64_t kMilli = 1'000'000;
  WireFaults& wire = scenario.wire;
  wire.loss = one_of(0.0, 0.0, 0.001, 0.01, 0.05, 0.2, 0.5);
  wire.delay = one_of(std::int64_t{0}, std::int64_t{20'000}, kMilli / 2, 5 * kMilli, 50 * kMilli, 150 * kMilli);
  wire.jitter = one_of(std::int64_t{0}, std::int64_t{0}, wire.delay / 4);
  wire.lateness = one_of(std::int64_t{10'000}, 2 * wire.delay + 1, 100 * kMilli);
  wire.burst_begin = one_of(0.0, 0.0, 0.0, 0.002, 0.02);
  wire.burst_end = one_of(0.1, 0.3, 0.6);
  wire.reorder = one_of(0.0, 0.0, 0.01, 0.2);
  wire.duplicate = one_of(0.0, 0.0, 0.01, 0.2);
  wire.corrupt = one_of(0.0, 0.0, 0.01, 0.05);
  wire.bytes_per_second = one_of(0.0, 125e6, 1.25e6);
  wire.queue = one_of(0U, 20U, 200U);
  const bool bad = wire.loss >= 0.2 || wire.burst_begin > 0.01;
  scenario.connections = one_of(1U, 1U, 2U, 5U, 30U);
  scenario.bytes = one_of(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{5000}, std::uint64_t{100'000},
                          std::uint64_t{bad ? 150'000U : 1'000'000U}) /
                   (scenario.connections > 5 ? 5 : 1);
  scenario.chunk = one_of(std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{65'536});
  scenario.sender_mtu = one_of(std::uint16_t{1500}, std::uint16_t{9000}, std::uint16_t{576});
  scenario.receiver_mtu = one_of(std::uint16_t{1500}, std::uint16_t{9000}, std::uint16_t{1280});
  scenario.window = one_of(std::uint64_t{9000}, std::uint64_t{64 << 10}, std::uint64_t{1 << 20});
  scenario.ring = one_of(std::uint64_t{64 << 10}, std::uint64_t{256 << 10}, std::uint64_t{1 << 20});
  scenario.half_open = one_of(1U, 64U);
  scenario.congestion = one_of(CongestionKind::cubic, CongestionKind::cubic, CongestionKind::fixed);
  if (may_outlast_cookies(scenario)) scenario.half_open = 64;
  scenario.nagle = chance(random, 0.2);
  scenario.wraps = chance(random, 0.3);
  if (chance(random, 0.1)) scenario.breaker = one_of(Breaker::sender, Breaker::receiver);
  for (HostHabits* const habits : {&scenario.sender, &scenario.receiver}) {
    habits->turn = one_of(std::int64_t{100}, std::int64_t{2000}, std::int64_t{50'000});
    habits->pause = one_of(0.0, 0.0, 0.01, 0.1);
    habits->pause_time = one_of(std::int64_t{100'000}, 10 * kMilli, 300 * kMilli);
    habits->burst = one_of(1U, 8U, 64U);
    habits->in_parts = one_of(0.0, 0.5, 0.95);
  }
  scenario.lane = chance(random, 0.5);
  scenario.lane_pace = one_of(1.0, 0.5, 0.1);
  scenario.lane_acknowledges = chance(random, 0.5);
  scenario.lane_queues = chance(random, 0.5);
  return scenario;
}

std::string describe(const StreamScenario& s) {
  const auto habits = [](const HostHabits& h) {
    return fmt::format("turn {} ns, burst {}, pause {} of {} ms, in parts {}", h.turn, h.burst, h.pause,
                       h.pause_time / 1'000'000, h.in_parts);
  };
  return fmt::format(
      "seed {}: {} connections of {} bytes, chunk {}, MTU {}/{}, window {}, ring {}, half open {}, {}{}{}{}; wire: "
      "loss {}, bursts {}/{}, delay {} us, jitter {} us, late {} of {} us, twice {}, corrupt {}, {} B/s, queue {}; "
      "sender: {}; receiver: {}; lane {}\n",
      s.seed, s.connections, s.bytes, s.chunk, s.sender_mtu, s.receiver_mtu, s.window, s.ring, s.half_open,
      s.congestion == CongestionKind::cubic ? "cubic" : "fixed", s.nagle ? ", nagle" : "", s.wraps ? ", wraps" : "",
      s.breaker == Breaker::nobody   ? ""
      : s.breaker == Breaker::sender ? ", sender aborts"
                                     : ", receiver aborts",
      s.wire.loss, s.wire.burst_begin, s.wire.burst_end, s.wire.delay / 1000, s.wire.jitter / 1000, s.wire.reorder,
      s.wire.lateness / 1000, s.wire.duplicate, s.wire.corrupt, s.wire.bytes_per_second, s.wire.queue, habits(s.sender),
      habits(s.receiver),
      s.lane ? fmt::format("with pace {}{}{}", s.lane_pace, s.lane_acknowledges ? ", acknowledges" : "",
                           s.lane_queues ? ", with queues" : "")
             : "none");
}

}  // namespace warpline::stream
