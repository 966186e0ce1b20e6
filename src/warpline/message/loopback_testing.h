// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"

namespace warpline::message {

inline constexpr std::int64_t kMs = 1'000'000;  ///< nanoseconds

/// Bytes that depend on `seed`, for payloads that can be told apart.
inline std::vector<std::uint8_t> pattern(std::size_t length, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>(mix64(seed + i / 8) >> (i % 8 * 8));
  return bytes;
}

/// What a network does to packets. Probabilities are out of a million.
struct Impairment {
  std::uint32_t loss = 0;
  std::uint32_t duplicate = 0;
  std::uint32_t reorder = 0;  ///< delayed by up to `reorder_by`
  std::uint32_t corrupt = 0;  ///< found by the checksum of UDP: dropped
  std::uint32_t mark = 0;     ///< Congestion Experienced
  Nanos delay{5'000};
  Nanos reorder_by{20'000};
};

/// Endpoints on a network in virtual time; everything follows from the seed.
class Loopback {
 public:
  struct Host {
    Endpoint endpoint;
    PeerAddress address;
    std::vector<MessageEvent> events;                 ///< those that no handler took
    std::function<bool(const MessageEvent&)> handle;  ///< true: taken
    bool dead = false;                                ///< neither sends nor hears
    bool deaf = false;                                ///< sends, but hears nothing
    bool away = false;                                ///< without a processor: what arrives waits
    std::uint64_t packets = 0;
    std::size_t request_limit = std::numeric_limits<std::size_t>::max();  ///< of each poll
    std::function<bool()> work{};  ///< what the owner does once a turn; true: there was something
    std::function<Nanos()> due{};  ///< and when it has to
  };

  explicit Loopback(std::uint64_t seed, Impairment faults = {}) : impairment(faults), random_(seed) {}

  Host& add(EndpointConfig config) {
    const auto number = static_cast<std::uint8_t>(hosts.size() + 1);
    config.secret.emplace().fill(static_cast<std::uint8_t>(17 * number));
    auto made = Endpoint::create(config, now);
    if (!made) std::abort();
    hosts.push_back(std::make_unique<Host>(
        Host{std::move(made).value(), peer_address(Ipv4Address{{10, 0, 0, number}}, 4000), {}, {}}));
    return *hosts.back();
  }

  /// A new endpoint in the place of the old, as after a restart.
  void restart(Host& host, EndpointConfig config) {
    config.secret.emplace().fill(0x5a);
    auto made = Endpoint::create(config, now);
    if (!made) std::abort();
    host.endpoint = std::move(made).value();
    host.events.clear();
    host.dead = false;
  }

  /// Until `done` or `limit`; false for the latter.
  bool run(const std::function<bool()>& done, Nanos limit = Nanos{20'000'000'000}) {
    const Nanos end{now.value + limit.value};
    settle();
    while (!done()) {
      const Nanos next = next_time();
      if (next == kNever || next > end) {
        now = end;
        settle();
        return done();
      }
      now = std::max(next, Nanos{now.value + 1});
      deliver();
      settle();
    }
    return true;
  }
  void run_for(Nanos time) {
    run([] { return false; }, time);
  }

  /// A datagram as if from `from`.
  void inject(Host& to, PeerAddress from, std::vector<std::uint8_t> bytes) { receive(to, from, bytes, 0, now); }

  /// Handshake between two; the sessions of both.
  std::pair<SessionId, SessionId> connect(Host& client, Host& server, SessionOptions options = {}) {
    const Opened opened = client.endpoint.connect(server.address, options, now);
    const auto of = [](const Host& host, EventKind kind) {
      return std::find_if(host.events.begin(), host.events.end(), [&](const auto& e) { return e.kind == kind; });
    };
    run([&] {
      return of(client, EventKind::connected) != client.events.end() &&
             of(server, EventKind::accepted) != server.events.end();
    });
    const auto accepted = of(server, EventKind::accepted);
    const SessionId there = accepted == server.events.end() ? SessionId{} : accepted->session;
    client.events.clear();
    server.events.clear();
    return {opened.session, there};
  }

  /// Sends what is due and hands out events, until there is nothing more now.
  void settle() {
    for (bool busy = true; busy;) {
      busy = false;
      for (auto& host : hosts) {
        if (host->dead || host->away) continue;
        host->endpoint.advance(now);
        busy |= poll(*host);
        busy |= host->work && host->work();
        busy |= transmit(*host);
      }
    }
  }

  Impairment impairment;
  bool whole = false;  ///< datagrams arrive in one piece, as they must with protection
  Nanos now{1'000'000};
  std::vector<std::unique_ptr<Host>> hosts;
  /// Sees each packet before the network does; true: it is lost.
  std::function<bool(const Host& from, std::vector<std::uint8_t>& bytes)> tap;
  bool keep_tokens = false;  ///< as a NIC that has not yet read the payload
  std::vector<std::uint64_t> kept_tokens;

 private:
  struct Flying {
    PeerAddress from;
    PeerAddress to;
    std::vector<std::uint8_t> bytes;
    std::uint8_t ecn = 0;
  };

  bool chance(std::uint32_t parts) { return parts != 0 && random_.below(1'000'000) < parts; }

  Nanos next_time() {
    Nanos next = flying_.empty() ? kNever : Nanos{flying_.begin()->first};
    for (auto& host : hosts) {
      if (!host->dead && !host->away) next = std::min(next, host->endpoint.next_deadline());
      if (host->due && !host->dead && !host->away) next = std::min(next, host->due());
    }
    return next;
  }

  void deliver() {
    while (!flying_.empty() && flying_.begin()->first <= now.value) {
      Flying packet = std::move(flying_.begin()->second);
      flying_.erase(flying_.begin());
      for (auto& host : hosts) {
        if (host->address != packet.to || host->dead || host->deaf) continue;
        if (host->away) {
          waiting_.emplace_back(host.get(), Arrival{now, packet});
        } else {
          receive(*host, packet.from, packet.bytes, packet.ecn, now);
        }
      }
    }
  }

 public:
  /// The host has a processor again, and reads what came meanwhile.
  void come_back(Host& host) {
    host.away = false;
    for (auto& [to, arrival] : waiting_) {
      if (to == &host) receive(host, arrival.packet.from, arrival.packet.bytes, arrival.packet.ecn, arrival.at);
    }
    std::erase_if(waiting_, [&](const auto& each) { return each.first == &host; });
  }

 private:
  struct Arrival {
    Nanos at;
    Flying packet;
  };

  void receive(Host& host, PeerAddress from, std::vector<std::uint8_t>& bytes, std::uint8_t ecn, Nanos arrived) {
    // Exactly as long as it is, so that a sanitizer sees who reads beyond.
    const auto length = static_cast<std::uint32_t>(bytes.size());
    const std::uint32_t most = whole ? length : kMaxHeadBytes + static_cast<std::uint32_t>(random_.below(64));
    const std::uint32_t cut = std::min(length, most);
    std::vector<std::uint8_t> head(bytes.begin(), bytes.begin() + cut);
    std::vector<std::uint8_t> rest(bytes.begin() + cut, bytes.end());
    Datagram datagram;
    datagram.head = head.data();
    datagram.head_length = cut;
    datagram.rest = rest.data();
    datagram.rest_length = length - cut;
    datagram.from = from;
    datagram.ecn = ecn;
    datagram.arrived = arrived;
    host.endpoint.receive({&datagram, 1}, now);
  }

  bool poll(Host& host) {
    MessageEvent events[16];
    const std::size_t count = host.endpoint.poll(events, host.request_limit);
    for (std::size_t i = 0; i < count; ++i) {
      if (!host.handle || !host.handle(events[i])) host.events.push_back(events[i]);
    }
    return count != 0;
  }

  bool transmit(Host& host) {
    constexpr std::size_t kBurst = 32;
    Outgoing out[kBurst];
    std::vector<std::uint8_t> heads(kBurst * 2048);
    for (std::size_t i = 0; i < kBurst; ++i) {
      out[i].head = heads.data() + i * 2048;
      out[i].head_capacity = 2048;
      out[i].copy_up_to = 200;
    }
    const std::size_t count = host.endpoint.transmit(out, now);
    host.packets += count;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint8_t> bytes(out[i].head, out[i].head + out[i].head_length);
      bytes.insert(bytes.end(), out[i].payload, out[i].payload + out[i].payload_length);
      if (out[i].token != 0 && keep_tokens) kept_tokens.push_back(out[i].token);
      if (out[i].token != 0 && !keep_tokens) host.endpoint.transmitted(out[i].token);
      if (tap && tap(host, bytes)) continue;
      send({host.address, out[i].to, std::move(bytes), static_cast<std::uint8_t>(out[i].ecn_capable ? 2 : 0)});
    }
    return count != 0;
  }

  void send(Flying packet) {
    if (chance(impairment.loss) || chance(impairment.corrupt)) return;
    if (packet.ecn != 0 && chance(impairment.mark)) packet.ecn = 3;
    const int copies = chance(impairment.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      std::int64_t at = now.value + impairment.delay.value;
      if (chance(impairment.reorder)) {
        at += static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(impairment.reorder_by.value)));
      }
      flying_.emplace(at, packet);
    }
  }

  Random random_;
  std::multimap<std::int64_t, Flying> flying_;
  std::vector<std::pair<Host*, Arrival>> waiting_;
};

}  // namespace warpline::message
