// SPDX-License-Identifier: Apache-2.0
// What protection costs a packet, of the payload sizes that messages have.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "warpline/base/statistics/perf_counters.h"
#include "warpline/protection/packet_protection.h"

namespace warpline::protection {
namespace {

constexpr message::HandshakeTranscript kSession{1, 2, 3, 4};

void seal_and_open(benchmark::State& state) {
  const auto client = *make_protection(AesKey{1}, 1);
  const auto server = *make_protection(AesKey{1}, 1);
  if (!client->offer(0) || !server->answer(0, client->key(0))) state.SkipWithError("no key");
  if (!server->start(0, client->share(0), kSession, false) || !client->start(0, server->share(0), kSession, true)) {
    state.SkipWithError("no keys");
  }
  const std::array<std::uint8_t, 48> header{};
  std::vector<std::uint8_t> text(static_cast<std::size_t>(state.range(0)));
  std::array<std::uint8_t, message::PacketProtection::kTagBytes> tag{};
  std::uint64_t number = 0;
  PerfCounters counters;
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    for (auto _ : state) {
      client->seal(0, number, header, text, tag);
      if (!server->open(0, number, header, text, tag)) state.SkipWithError("what was sealed does not open");
      ++number;
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetLabel(counters.describe());
  for (const auto& [name, value] : totals.each(number)) state.counters[name] = value;
}
BENCHMARK(seal_and_open)->Arg(32)->Arg(256)->Arg(1408);

/// What a session's handshake costs the end that opens it: items are handshakes of one core.
void open_session(benchmark::State& state) {
  const auto protection = *make_protection(AesKey{1}, 2);
  if (!protection->offer(1)) state.SkipWithError("no key");
  const message::KeyShare peer = protection->share(1);
  message::HandshakeTranscript session = kSession;
  message::HandshakeProof proof;
  const std::span<const std::uint8_t> hello = std::span(session).first(packet::MessageHello::kProven);
  for (auto _ : state) {
    ++session[8];
    if (!protection->offer(0) || !protection->prove(0, hello, proof) || !protection->prove(0, session, proof) ||
        !protection->start(0, peer, session, true)) {
      state.SkipWithError("no key");
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(open_session);

/// The same of the end that accepts it, from the hello with its proof on.
void accept_session(benchmark::State& state) {
  const auto client = *make_protection(AesKey{1}, 1);
  const auto server = *make_protection(AesKey{1}, 1);
  if (!client->offer(0)) state.SkipWithError("no key");
  message::HandshakeTranscript session = kSession;
  message::HandshakeProof proof;
  const std::span<const std::uint8_t> hello = std::span(session).first(packet::MessageHello::kProven);
  for (auto _ : state) {
    ++session[8];
    if (!server->prove_hello(client->key(0), hello, proof) || !server->answer(0, client->key(0)) ||
        !server->prove(0, session, proof) || !server->start(0, client->share(0), session, false)) {
      state.SkipWithError("no key");
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(accept_session);

}  // namespace
}  // namespace warpline::protection
