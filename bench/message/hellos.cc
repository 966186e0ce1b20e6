// SPDX-License-Identifier: Apache-2.0
// What a flood of hellos costs a busy server: message_hellos [ROUNDS]. A client's endpoint asks a server's, all in
// memory and in turns on one thread, while a generator gives the server a million hellos for each second of its
// processor time: none, from one address, from addresses at random, interleaved. Prints requests for each such second
// as JSON.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kSessions = 64;
constexpr std::uint32_t kOutstanding = 8;
constexpr std::uint32_t kBytes = 32;
constexpr std::size_t kBurst = 32;
constexpr double kHellosANano = 1e-3;
constexpr std::int64_t kRound = 100'000'000;  // nanoseconds of the server's processor time
constexpr std::string_view kFloods[] = {"none", "none again", "one address", "any address"};

std::int64_t processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void fail(std::string_view why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

/// Datagrams from one endpoint, each in a place of its own until the other has them.
struct Wire {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBurst * 2048);
  std::array<Datagram, kBurst> datagrams{};

  std::size_t carry(Endpoint& from, const PeerAddress& sender, Nanos now) {
    std::array<Outgoing, kBurst> out{};
    for (std::size_t i = 0; i < kBurst; ++i) {
      out[i].head = bytes.data() + i * 2048;
      out[i].head_capacity = 2048;
      out[i].copy_up_to = 1500;
    }
    const std::size_t count = from.transmit(out, now);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].token != 0) from.transmitted(out[i].token);
      datagrams[i] = {.head = out[i].head, .head_length = out[i].head_length, .from = sender};
    }
    return count;
  }
};

class Flooded {
 public:
  Flooded() : client_(make(1)), server_(make(2)) {
    for (std::uint32_t i = 0; i < kHellos; ++i) {
      packet::MessageHello hello;
      hello.session = i;
      hello.nonce = mix64(i);
      hello.terms.datagram_bytes = 1472;
      packet::emit(hello, hellos_.data() + i * packet::MessageHello::kLength);
    }
    for (std::uint32_t i = 0; i < kSessions; ++i) {
      const Opened opened = client_.connect(kServer, {}, now());
      if (opened.status != CallStatus::ok) fail("no session");
      sessions_.push_back(opened.session);
    }
    while (connected_ < kSessions) turn(0);
    for (std::uint32_t i = 0; i < kSessions * kOutstanding; ++i) ask(i);
  }

  /// Requests for each second of the server's processor time.
  double round(std::size_t flood) {
    const std::uint64_t begin = answered_;
    const std::int64_t from = server_time_;
    given_ = 0;
    for (flood_from_ = from; server_time_ - from < kRound;) turn(flood);
    return static_cast<double>(answered_ - begin) * 1e9 / static_cast<double>(server_time_ - from);
  }
  [[nodiscard]] std::uint64_t hellos() const { return all_given_; }
  [[nodiscard]] const EndpointCounters& counters() const { return server_.counters(); }

 private:
  static constexpr std::uint32_t kHellos = 1024;
  static inline const PeerAddress kServer = peer_address(Ipv4Address{{10, 0, 0, 1}}, 7000);
  static inline const PeerAddress kClient = peer_address(Ipv4Address{{10, 0, 0, 2}}, 7001);

  static Endpoint make(std::uint8_t number) {
    EndpointConfig config;
    config.max_sessions = 1024;
    config.base_bytes = config.datagram_bytes;
    config.secret.emplace().fill(number);
    auto made = Endpoint::create(config, Nanos{1});
    if (!made) fail(made.error().message());
    return std::move(made).value();
  }
  [[nodiscard]] static Nanos now() { return Nanos{processor_time()}; }
  /// The server's clock stands while it has not the processor: by it the hellos are a million a second, as for a server
  /// with a core of its own.
  [[nodiscard]] Nanos server_now() const { return {1 + server_time_}; }

  void ask(std::uint32_t slot) {
    const Submitted asked = client_.request(sessions_[slot % kSessions], {request_.data(), kBytes},
                                            {rooms_[slot].data(), kBytes}, {.context = slot}, now());
    if (asked.status != CallStatus::ok) fail("a request is not taken");
  }

  void flood(std::size_t kind) {
    const auto due = static_cast<std::uint64_t>(static_cast<double>(server_time_ - flood_from_) * kHellosANano);
    std::array<Datagram, kBurst> burst{};
    while (due >= given_ + kBurst) {  // as one call takes them: the clock is read twice for each
      for (std::size_t i = 0; i < kBurst; ++i) {
        const std::uint64_t any = random_.next();
        burst[i] = {.head = hellos_.data() + any % kHellos * packet::MessageHello::kLength,
                    .head_length = packet::MessageHello::kLength,
                    .from = kind == 2 ? kStranger
                                      : peer_address(Ipv4Address{{192, static_cast<std::uint8_t>(any >> 40),
                                                                  static_cast<std::uint8_t>(any >> 32),
                                                                  static_cast<std::uint8_t>(any >> 24)}},
                                                     static_cast<std::uint16_t>(any >> 48 | 1))};
      }
      const std::int64_t before = processor_time();
      server_.receive(burst, server_now());
      server_time_ += processor_time() - before;
      given_ += kBurst;
      all_given_ += kBurst;
    }
  }

  void turn(std::size_t kind) {
    Nanos time = now();
    client_.advance(time);
    std::array<MessageEvent, kBurst> events;
    for (std::size_t count = 0; (count = to_server_.carry(client_, kClient, time)) != 0;) {
      const std::int64_t before = processor_time();
      server_.receive(std::span(to_server_.datagrams).first(count), server_now());
      server_time_ += processor_time() - before;
    }
    if (kind >= 2) flood(kind);
    std::int64_t before = processor_time();
    server_.advance(server_now());
    for (std::size_t count = 0; (count = server_.poll(events)) != 0;) {
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].kind == EventKind::request &&
            server_.respond(events[i].id, {events[i].data, events[i].length}, {}, server_now()) != CallStatus::ok) {
          fail("an answer is not taken");
        }
      }
    }
    server_time_ += processor_time() - before;
    while (true) {
      before = processor_time();
      const std::size_t count = to_client_.carry(server_, kServer, server_now());
      server_time_ += processor_time() - before;
      if (count == 0) break;
      time = now();
      client_.receive(std::span(to_client_.datagrams).first(count), time);
    }
    for (std::size_t count = 0; (count = client_.poll(events)) != 0;) {
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].kind == EventKind::connected) ++connected_;
        if (events[i].kind == EventKind::lost) fail("a session is lost");
        if (events[i].kind != EventKind::response) continue;
        if (events[i].status != MessageStatus::ok || events[i].length != kBytes) fail("an answer is wrong");
        ++answered_;
        ask(static_cast<std::uint32_t>(events[i].context));
      }
    }
  }

  static inline const PeerAddress kStranger = peer_address(Ipv4Address{{192, 0, 2, 1}}, 9);
  Endpoint client_;
  Endpoint server_;
  Wire to_server_;
  Wire to_client_;
  std::vector<SessionId> sessions_;
  std::array<std::uint8_t, kBytes> request_{};
  std::vector<std::array<std::uint8_t, kBytes>> rooms_ =
      std::vector<std::array<std::uint8_t, kBytes>>(kSessions * kOutstanding);
  std::vector<std::uint8_t> hellos_ = std::vector<std::uint8_t>(kHellos * packet::MessageHello::kLength);
  Random random_{7};
  std::uint32_t connected_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t all_given_ = 0;
  std::int64_t flood_from_ = 0;
  std::int64_t server_time_ = 0;
};

int main(int count, char** words) {
  int rounds = 11;
  if (count > 1) std::from_chars(words[1], words[1] + std::strlen(words[1]), rounds);
  Flooded flooded;
  (void)flooded.round(0);
  std::array<std::vector<double>, std::size(kFloods)> ratios;
  std::vector<double> rates;
  for (int i = 0; i < rounds; ++i) {
    std::array<double, std::size(kFloods)> rate{};
    for (std::size_t kind = 0; kind < rate.size(); ++kind) rate[kind] = flooded.round(kind);
    rates.push_back(rate[0]);
    for (std::size_t kind = 0; kind < rate.size(); ++kind) ratios[kind].push_back(rate[kind] / rate[0]);
  }
  const auto middle = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  fmt::print(
      "{{\"benchmark\": \"message_hellos\", \"hellos_per_server_s\": 1e6, \"rounds\": {}, \"hellos\": {}, "
      "\"requests_per_server_s\": {:.0f}, \"refused_unseen\": {},\n \"ratio_to_none\": {{",
      rounds, flooded.hellos(), middle(rates), flooded.counters().dropped(MessageDrop::no_reply_room));
  for (std::size_t kind = 1; kind < ratios.size(); ++kind) {
    const double median = middle(ratios[kind]);
    fmt::print("{}\"{}\": {{\"median\": {:.4f}, \"low\": {:.4f}, \"high\": {:.4f}}}", kind == 1 ? "" : ", ",
               kFloods[kind], median, ratios[kind].front(), ratios[kind].back());
  }
  fmt::print("}}}}\n");
  return 0;
}

}  // namespace
}  // namespace warpline::message

int main(int count, char** words) { return warpline::message::main(count, words); }
