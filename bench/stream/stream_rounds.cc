// SPDX-License-Identifier: Apache-2.0
// The part of bench/stream/run in memory: what receiving costs one core beside the copies that nobody can do without.
//
//     stream_rounds ROUNDS
//
// Segments of 1448 bytes with timestamps lie in as many buffers as a port's receive ring has, and come in bursts of 64;
// what arrived is given back after each. Prints one line a measurement: its name, a tab, and nanoseconds a segment.
// "First bytes" go into rings whose pages are not there yet. Each payload is compared with its segment's while the
// clock stands: a difference ends the program with 4.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/base/random.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/ring_memory.h"
#include "warpline/stream/stream_receiver.h"

namespace {

using namespace warpline;

constexpr std::uint32_t kPayload = 1448;
constexpr std::size_t kBurst = 64;
constexpr std::size_t kBuffers = 2048;
constexpr std::size_t kBufferBytes = 2304;  ///< as of a pool: mbuf, headroom and data
constexpr std::size_t kHeadroom = 256;
constexpr std::size_t kPasses = 64;  ///< over all buffers, in one measurement
constexpr std::uint64_t kRing = 4 << 20;
constexpr std::size_t kAhead = 4;
constexpr MacAddress kOur{{2, 0, 0, 0, 0, 1}}, kPeer{{2, 0, 0, 0, 0, 2}};

[[noreturn]] void fail(std::string_view why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(4);
}

packet::TcpFrame header_of(std::uint16_t port) {
  packet::TcpFrame header;
  header.destination_mac = kOur;
  header.source_mac = kPeer;
  header.source = Ipv4Address{{10, 0, 0, 2}};
  header.destination = Ipv4Address{{10, 0, 0, 1}};
  header.tcp.source_port = port;
  header.tcp.destination_port = 5001;
  header.tcp.window = 0xffff;
  const std::uint8_t timestamps[] = {1, 1, packet::kTcpOptionTimestamps, 10, 0, 0, 0, 1, 0, 0, 0, 1};
  header.tcp.options_length = sizeof timestamps;
  std::ranges::copy(timestamps, header.tcp.options);
  return header;
}

stream::StreamReceiver receiver_of(std::uint32_t connections, bool populate) {
  stream::ReceiverSettings settings;
  settings.mac = kOur;
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {5001};
  settings.connections = connections;
  settings.half_open = connections;
  settings.ring_bytes = kRing;
  settings.populate_rings = populate;
  settings.secret[0] = 1;
  auto made = stream::StreamReceiver::create(settings, Nanos{1});
  if (!made.ok()) fail(made.error().message());
  return std::move(made).value();
}

/// Buffers with one segment each, of so many connections in turn.
class Segments {
 public:
  explicit Segments(std::uint32_t connections) : connections_(connections), bytes_(kBuffers * kBufferBytes) {
    Random random(1);
    for (std::size_t i = 0; i < bytes_.size(); i += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(bytes_.data() + i, &word, 8);
    }
  }

  /// Opens all connections of a receiver. Returns their names.
  std::vector<stream::ConnectionId> open(stream::StreamReceiver& receiver, Nanos now) {
    std::vector<stream::ConnectionId> names;
    for (std::uint32_t i = 0; i < connections_; ++i) {
      packet::TcpFrame header = header_of(port_of(i));
      header.tcp.flags = packet::kTcpSyn;
      hear(receiver, header, now);
      std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
      const std::uint32_t length = receiver.next_reply(reply, now);
      if (length == 0) fail("a SYN was not answered");
      Segment piece{reply, length, 0, Verdict::forward};
      const packet::ParsedFrame parsed = packet::parse(frame_at(&piece));
      header.tcp.acknowledgement = packet::TcpView(reply + parsed.l4_offset).sequence() + 1;
      header.tcp.flags = packet::kTcpAck;
      header.tcp.sequence = 1;
      hear(receiver, header, now);
      for (std::size_t buffer = i; buffer < kBuffers; buffer += connections_) {
        header.tcp.sequence = 1 + static_cast<std::uint32_t>(buffer / connections_) * kPayload;
        write(header, buffer);
      }
    }
    while (const auto event = receiver.poll()) names.push_back(event->connection);
    if (names.size() != connections_) fail("a connection was not opened");
    return names;
  }

  /// Turns every segment into the one that comes after all of them.
  void go_on() {
    const auto step = static_cast<std::uint32_t>(kBuffers / connections_) * kPayload;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      std::uint8_t* const tcp = frame(i) + packet::EthernetView::kHeaderLength + packet::Ipv4View::kHeaderLength;
      const std::uint32_t before = packet::load_be32(tcp + packet::TcpView::kSequence);
      packet::store_be32(tcp + packet::TcpView::kSequence, before + step);
      // RFC 1624, equation 3.
      std::uint64_t sum = static_cast<std::uint16_t>(~packet::load_be16(tcp + packet::TcpView::kChecksum));
      for (const std::uint32_t part : {~before, before + step}) sum += (part >> 16) + (part & 0xffff);
      while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
      packet::store_be16(tcp + packet::TcpView::kChecksum, static_cast<std::uint16_t>(~sum));
    }
  }

  [[nodiscard]] std::uint8_t* frame(std::size_t i) { return bytes_.data() + i * kBufferBytes + kHeadroom; }
  [[nodiscard]] const std::uint8_t* payload(std::size_t i) { return frame(i) + length_ - kPayload; }
  [[nodiscard]] std::uint32_t length() const { return length_; }

 private:
  static std::uint16_t port_of(std::uint32_t connection) { return static_cast<std::uint16_t>(40000 + connection); }

  static void hear(stream::StreamReceiver& receiver, const packet::TcpFrame& header, Nanos now) {
    std::uint8_t bytes[128];
    Segment piece{bytes, packet::emit(header, bytes, 0, {}), 0, Verdict::forward};
    receiver.receive(frame_at(&piece), false, now);
  }

  void write(const packet::TcpFrame& header, std::size_t i) {
    const std::uint32_t headers = packet::tcp_headers_length(header);
    length_ = headers + kPayload;
    packet::ChecksumSum sum;
    sum.add(frame(i) + headers, kPayload);
    if (packet::emit(header, {frame(i), length_}, kPayload, sum) != headers) fail("a segment has no room");
  }

  std::uint32_t connections_;
  std::uint32_t length_ = 0;
  LargeVector<std::uint8_t> bytes_;
};

/// Counts time while it runs.
class Stopwatch {
 public:
  void start() { begin_ = Clock::now(); }
  void stop() { passed_ += Clock::now() - begin_; }
  [[nodiscard]] double nanoseconds() const { return std::chrono::duration<double, std::nano>(passed_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  Clock::duration passed_{};
};

/// Compares what a burst brought with its segments.
void verify(const stream::StreamReceiver& receiver, const std::vector<stream::ConnectionId>& names, Segments& segments,
            std::size_t first) {
  std::vector<std::uint32_t> seen(names.size());
  for (std::size_t i = first; i < first + kBurst; ++i) {
    const std::size_t connection = i % names.size();
    const auto view = receiver.view(names[connection]);
    const std::size_t at = seen[connection]++ * kPayload;
    if (!view || view->bytes.size() < at + kPayload) fail("a payload is missing");
    if (std::memcmp(view->bytes.data() + at, segments.payload(i), kPayload) != 0) fail("a payload is wrong");
  }
}

double receive(std::uint32_t connections, bool checksums_are_right, bool populate = true) {
  stream::StreamReceiver receiver = receiver_of(connections, populate);
  Segments segments(connections);
  Nanos now{1000};
  const std::vector<stream::ConnectionId> names = segments.open(receiver, now);
  Stopwatch watch;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (std::size_t first = 0; first < kBuffers; first += kBurst) {
      now.value += 10'000;
      watch.start();
      for (std::size_t i = first; i < first + kBurst; ++i) {
        if (i + kAhead < first + kBurst) __builtin_prefetch(segments.frame(i + kAhead));
        Segment piece{segments.frame(i), segments.length(), 0, Verdict::forward};
        receiver.receive(frame_at(&piece), checksums_are_right, now);
      }
      receiver.end_burst(now);
      watch.stop();
      verify(receiver, names, segments, first);
      watch.start();
      std::uint64_t released = 0;
      while (const auto event = receiver.poll()) {
        released += event->readable;
        if (!receiver.release(event->connection, event->readable)) fail("bytes cannot be given back");
      }
      std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
      while (receiver.next_reply(reply, now) != 0) {
      }
      if (receiver.next_deadline() <= now) receiver.advance(now);
      watch.stop();
      if (released != kBurst * kPayload) fail("other bytes arrived than were sent");
    }
    segments.go_on();
  }
  return watch.nanoseconds() / (kPasses * kBuffers);
}

/// The same bytes from the same buffers into as many rings, and nothing else.
double copy_alone(std::uint32_t connections, bool populate = true) {
  stream::StreamReceiver receiver = receiver_of(connections, populate);
  Segments segments(connections);
  (void)segments.open(receiver, Nanos{1000});
  auto rings = stream::RingMemory::create(connections, kRing, populate);
  if (!rings.ok()) fail(rings.error().message());
  std::vector<std::size_t> at(connections);
  const std::uint8_t* copies[kBurst];
  Stopwatch watch;
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (std::size_t first = 0; first < kBuffers; first += kBurst) {
      watch.start();
      for (std::size_t i = first; i < first + kBurst; ++i) {
        if (i + kAhead < first + kBurst) __builtin_prefetch(segments.frame(i + kAhead));
        const std::size_t connection = i % connections;
        std::uint8_t* const to = rings->ring(static_cast<std::uint32_t>(connection)) + at[connection];
        std::memcpy(to, segments.payload(i), kPayload);
        copies[i - first] = to;
        at[connection] = (at[connection] + kPayload) % kRing;
      }
      watch.stop();
      for (std::size_t i = first; i < first + kBurst; ++i) {
        if (std::memcmp(copies[i - first], segments.payload(i), kPayload) != 0) fail("a copy is wrong");
      }
    }
  }
  return watch.nanoseconds() / (kPasses * kBuffers);
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count == 2 ? std::atoi(arguments[1]) : 0;
  if (rounds <= 0) {
    fmt::print(stderr, "usage: stream_rounds ROUNDS\n");
    return 2;
  }
  struct Contender {
    std::string_view name;
    double (*measure)();
  };
  std::vector<Contender> contenders = {
      {"1 connection", [] { return receive(1, true); }},
      {"1 connection again", [] { return receive(1, true); }},
      {"64 connections", [] { return receive(64, true); }},
      {"64 connections, their first bytes", [] { return receive(64, true, false); }},
      {"1 connection, checksums in software", [] { return receive(1, false); }},
      {"copies alone, 1 connection", [] { return copy_alone(1); }},
      {"copies alone, 64 connections", [] { return copy_alone(64); }},
      {"copies alone, 64 connections, their first bytes", [] { return copy_alone(64, false); }},
  };
  Random random(2);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = contenders.size(); i > 1; --i) std::swap(contenders[i - 1], contenders[random.below(i)]);
    for (const Contender& contender : contenders) fmt::print("{}\t{}\n", contender.name, contender.measure());
    std::fflush(stdout);
  }
  return 0;
}
