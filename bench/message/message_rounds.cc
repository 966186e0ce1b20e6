// SPDX-License-Identifier: Apache-2.0
// message_rounds ROUNDS SECONDS [QUESTION [CONTENDER]]: every contender once a round, in a new order each; JSON on
// stdout. What is compared was measured in the same round.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runs.h"
#include "warpline/base/random.h"
#include "warpline/base/statistics/bootstrap.h"
#include "warpline/report/facts.h"
#include "warpline/runtime/eal.h"

namespace warpline {
namespace {

constexpr std::uint32_t kWindow = 64;
constexpr std::uint16_t kRawReports = 32;               ///< descriptors at once: the driver's own way
constexpr std::uint32_t kRpcFrame = 42 + 28 + 20 + 32;  ///< of a short request without an acknowledgement

struct Contender {
  std::string question;  ///< rate, latency, goodput, or that in jumbo frames
  std::string name;
  std::function<RunFigures()> run;
};

double figure(const Contender& contender, const RunFigures& figures) {
  if (contender.question == "rate") return figures.per_second;
  if (figures.p50_ns == 0 && contender.question == "latency") return 1e9 / figures.per_second;  // one at a time
  return contender.question == "latency" ? figures.p50_ns : figures.gbps;
}

nlohmann::ordered_json to_json(const Estimate& estimate) {
  return {{"median", estimate.median}, {"low", estimate.low}, {"high", estimate.high}};
}

Result<int> run(std::uint32_t rounds, double seconds, const std::string& question, const std::string& contender) {
  WARPLINE_TRY(
      const runtime::Eal eal,
      runtime::Eal::start({.share_cores = true}, {{.name = "server"}, {.name = "client"}}, {}, Bytes{1U << 30}));
  WARPLINE_TRY(BenchWire vnic, make_wire("vnic", 0, true));
  WARPLINE_TRY(BenchWire ring, make_wire("ring", 1, true));
  WARPLINE_TRY(BenchWire unchecked, make_wire("vnic", 2, false));
  WARPLINE_TRY(BenchWire raw, make_wire("vnic", 3, true, kRawReports));
  WARPLINE_TRY(BenchWire jumbo, make_wire("vnic", 4, true, {}, kJumbo));
  WARPLINE_TRY(BenchWire jumbo_unchecked, make_wire("vnic", 5, false, {}, kJumbo));
  WARPLINE_TRY(BenchWire jumbo_raw, make_wire("vnic", 6, true, kRawReports, kJumbo));
  const BenchLcores lcores{eal.plan(), 0.1, seconds};

  const MessageRun rpc{.outstanding = kWindow};
  const MessageRun no_cc{.cc = message::CcKind::none, .outstanding = kWindow};
  const MessageRun compatible{
      .cc = message::CcKind::timely, .reliability = message::Reliability::go_back_n, .outstanding = kWindow};
  const MessageRun alone{.outstanding = kWindow, .bundles = false};
  const MessageRun encrypted{.outstanding = kWindow, .encrypted = true};
  const MessageRun hundred{.outstanding = kWindow, .sessions = 100};
  const MessageRun many{.outstanding = kWindow, .sessions = 20'000};
  const MessageRun single{.outstanding = 1};
  const MessageRun lengthy{.length = kLongMessage, .outstanding = 2, .echo = false};
  MessageRun lengthy_encrypted = lengthy;
  lengthy_encrypted.encrypted = true;
  MessageRun lengthy_encrypted_no_cc = lengthy_encrypted;
  lengthy_encrypted_no_cc.cc = message::CcKind::none;
  MessageRun lengthy_no_cc = lengthy;
  lengthy_no_cc.cc = message::CcKind::none;
  MessageRun lengthy_compatible = compatible;
  lengthy_compatible.length = kLongMessage;
  lengthy_compatible.outstanding = 2;
  lengthy_compatible.echo = false;
  MessageRun lengthy_jumbo = lengthy;
  lengthy_jumbo.datagram_bytes = kJumbo.datagram();
  MessageRun lengthy_jumbo_encrypted = lengthy_jumbo;
  lengthy_jumbo_encrypted.encrypted = true;
  MessageRun lengthy_jumbo_no_cc = lengthy_jumbo;
  lengthy_jumbo_no_cc.cc = message::CcKind::none;
  const auto over = [&](BenchWire& wire, const MessageRun& what) {
    return [&lcores, &wire, what] { return run_messages(lcores, wire, what); };
  };
  std::vector<Contender> contenders = {
      {"rate", "messages", over(vnic, rpc)},
      {"rate", "messages again", over(vnic, rpc)},
      {"rate", "messages without congestion control", over(vnic, no_cc)},
      {"rate", "messages, one a packet", over(vnic, alone)},
      {"rate", "messages, encrypted", over(vnic, encrypted)},
      {"rate", "messages in 100 sessions", [&] { return run_rotating(lcores, vnic, hundred); }},
      {"rate", "messages in 20000 sessions", [&] { return run_rotating(lcores, vnic, many); }},
      {"rate", "messages on net_ring", over(ring, rpc)},
      {"rate", "compatibility mode", over(vnic, compatible)},
      {"rate", "messages on kernel sockets", [&] { return run_messages_on_sockets(lcores, rpc); }},
      {"rate", "raw bursts", [&] { return run_raw_echo(lcores, raw, kRpcFrame, kWindow); }},
      {"rate", "kernel UDP", [&] { return run_udp_echo(lcores, 32, kWindow); }},
      {"rate", "kernel TCP", [&] { return run_tcp_echo(lcores, 32, kWindow); }},
      {"latency", "messages", over(vnic, single)},
      {"latency", "messages again", over(vnic, single)},
      {"latency", "raw bursts", [&] { return run_raw_echo(lcores, raw, kRpcFrame, 1); }},
      {"latency", "kernel UDP", [&] { return run_udp_echo(lcores, 32, 1); }},
      {"goodput", "messages", over(vnic, lengthy)},
      {"goodput", "messages again", over(vnic, lengthy)},
      {"goodput", "messages, encrypted", over(vnic, lengthy_encrypted)},
      {"goodput", "messages, encrypted, without congestion control", over(vnic, lengthy_encrypted_no_cc)},
      {"goodput", "sealing alone", [&] { return run_sealing(lcores, kOrdinary.payload()); }},
      {"goodput", "messages without congestion control", over(vnic, lengthy_no_cc)},
      {"goodput", "messages without UDP checksum", over(unchecked, lengthy)},
      {"goodput", "messages on net_ring", over(ring, lengthy)},
      {"goodput", "compatibility mode", over(vnic, lengthy_compatible)},
      {"goodput", "messages on kernel sockets", [&] { return run_messages_on_sockets(lcores, lengthy); }},
      {"goodput", "raw bursts", [&] { return run_raw_stream(lcores, raw, kOrdinary.bytes(), kOrdinary.payload()); }},
      {"goodput", "kernel UDP", [&] { return run_udp_stream(lcores, kOrdinary.datagram()); }},
      {"goodput", "kernel TCP", [&] { return run_tcp_stream(lcores); }},
      {"jumbo", "messages", over(jumbo, lengthy_jumbo)},
      {"jumbo", "messages again", over(jumbo, lengthy_jumbo)},
      {"jumbo", "messages, encrypted", over(jumbo, lengthy_jumbo_encrypted)},
      {"jumbo", "sealing alone", [&] { return run_sealing(lcores, kJumbo.payload()); }},
      {"jumbo", "messages without congestion control", over(jumbo, lengthy_jumbo_no_cc)},
      {"jumbo", "messages without UDP checksum", over(jumbo_unchecked, lengthy_jumbo)},
      {"jumbo", "raw bursts", [&] { return run_raw_stream(lcores, jumbo_raw, kJumbo.bytes(), kJumbo.payload()); }},
      {"jumbo", "kernel UDP", [&] { return run_udp_stream(lcores, kJumbo.datagram()); }},
  };

  std::erase_if(contenders, [&](const Contender& c) {
    return (!question.empty() && c.question != question) || (!contender.empty() && c.name != contender);
  });
  std::vector<std::vector<double>> values(contenders.size());
  std::vector<double> tail;
  Random random(1);
  std::vector<std::size_t> order(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const std::size_t i : order) {
      const RunFigures figures = contenders[i].run();
      values[i].push_back(figure(contenders[i], figures));
      if (contenders[i].question == "latency" && contenders[i].name == "messages" && figures.p50_ns > 0) {
        tail.push_back(figures.p99_ns / figures.p50_ns);
      }
    }
    fmt::print(stderr, "round {} of {}\n", round + 1, rounds);
  }

  nlohmann::ordered_json report = {{"schema_version", 1},
                                   {"command", fmt::format("bench/message/run {} {}", rounds, seconds)},
                                   {"build", report::build_facts()},
                                   {"host", report::host_facts()},
                                   {"hugepages", eal.hugepages()},
                                   {"rounds", rounds},
                                   {"seconds", seconds},
                                   {"units",
                                    {{"rate", "requests/s"},
                                     {"latency", "ns, median"},
                                     {"goodput", "Gbit/s"},
                                     {"jumbo", "Gbit/s in frames of 9014 bytes"}}}};
  std::map<std::string, std::size_t> own;
  for (std::size_t i = 0; i < contenders.size(); ++i) own.try_emplace(contenders[i].question, i);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const std::size_t first = own[contenders[i].question];
    nlohmann::ordered_json entry = {{"figure", to_json(estimate(values[i]))}, {"values", values[i]}};
    if (i != first) entry["messages_to_this"] = to_json(estimate_ratio(values[first], values[i]));
    report[contenders[i].question][contenders[i].name] = entry;
  }
  if (!tail.empty()) report["latency_p99_to_p50"] = to_json(estimate(tail));
  fmt::print("{}\n", report.dump(1));
  return 0;
}

}  // namespace
}  // namespace warpline

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  const auto rounds = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 15);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
  if (rounds == 0 || seconds <= 0) {
    fmt::print(stderr, "usage: message_rounds [ROUNDS [SECONDS [rate|latency|goodput|jumbo [CONTENDER]]]]\n");
    return 2;
  }
  const auto result = warpline::run(rounds, seconds, argc > 3 ? argv[3] : "", argc > 4 ? argv[4] : "");
  if (result) return *result;
  fmt::print(stderr, "{}\n", result.error().message());
  return static_cast<int>(result.error().kind);
}
