// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/message/two_testing.h"
#include "warpline/rpc/streams/call_streams.h"

namespace warpline::rpc {

inline message::EndpointConfig with_streams() {
  message::EndpointConfig config = message::small();
  config.max_messages = 4096;
  config.streams = true;
  return config;
}

/// A client and a server that hand calls in pieces to their applications, in virtual time.
struct StreamPair {
  explicit StreamPair(message::Impairment faults = {}, std::uint64_t seed = 3, message::SessionOptions options = {},
                      message::EndpointConfig config = with_streams(),
                      CallStreamSettings settings = {.streams = 8, .window = 65'536})
      : places(settings.streams), net(seed, faults), client(net.add(config)), server(net.add(config)) {
    std::tie(session, there) = net.connect(client, server, options);
    for (message::Loopback::Host* host : {&client, &server}) {
      auto made = CallStreams::make(settings, config, nullptr);
      EXPECT_TRUE(made.ok());
      std::unique_ptr<CallStreams>& place = host == &client ? client_streams : server_streams;
      place = std::move(made).value();
      CallStreams& streams = *place;
      host->handle = [this, host, &streams](const message::MessageEvent& event) {
        return streams.handle(host->endpoint, event, net.now);
      };
      host->work = [this, host, &streams] { return streams.advance(host->endpoint, true, net.now) && moved(host); };
      host->due = [&streams] { return streams.next_deadline(); };
    }
    server_streams->take_by([this](CallStream stream) { taken.push_back(std::move(stream)); });
    idle = {client.endpoint.facts(), server.endpoint.facts()};
  }
  ~StreamPair() {
    client_streams->end_all(client.endpoint, net.now);
    server_streams->end_all(server.endpoint, net.now);
  }

  /// A turn that waits for the endpoint did nothing new.
  bool moved(const message::Loopback::Host* host) {
    std::uint64_t& before = seen[host == &client];
    const CallStreamCounters& counters = (host == &client ? client_streams : server_streams)->counters();
    const std::uint64_t now = counters.pieces_out.get() + counters.credits_out.get() + counters.opened.get();
    return std::exchange(before, now) != now;
  }

  CallStream open(StreamCall call = {}) {
    call.session = session;
    OpenedStream opened = client_streams->open(call, net.now);
    EXPECT_EQ(opened.status, message::CallStatus::ok);
    return std::move(opened.stream);
  }
  /// Opens one and waits until it was taken.
  CallStream open_taken(StreamCall call = {}) {
    CallStream stream = open(call);
    EXPECT_TRUE(net.run([&] { return !taken.empty(); }));
    return stream;
  }
  /// Streams have nothing any more: neither places, nor messages and memory of their endpoint.
  [[nodiscard]] bool client_has_nothing() const {
    return has_nothing(*client_streams, client.endpoint.facts(), idle.first);
  }
  [[nodiscard]] bool server_has_nothing() const {
    return has_nothing(*server_streams, server.endpoint.facts(), idle.second);
  }
  [[nodiscard]] bool has_nothing(const CallStreams& streams, const message::EndpointFacts& now,
                                 const message::EndpointFacts& before) const {
    return streams.available() == places && now.free_messages == before.free_messages &&
           now.free_receive_bytes == before.free_receive_bytes;
  }
  /// All was let go, and whatever it took is back.
  bool all_back() {
    return net.run([&] { return client_has_nothing() && server_has_nothing(); });
  }

  std::uint32_t places;  ///< at each end
  message::Loopback net;
  message::Loopback::Host& client;
  message::Loopback::Host& server;
  message::SessionId session;
  message::SessionId there;
  std::unique_ptr<CallStreams> client_streams;
  std::unique_ptr<CallStreams> server_streams;
  std::vector<CallStream> taken;
  std::pair<message::EndpointFacts, message::EndpointFacts> idle;
  std::uint64_t seen[2] = {};
};

/// Writes pieces whose lengths and bytes follow from the seed, as far as there is room.
struct PieceWriter {
  std::uint64_t seed;
  std::uint32_t pieces;
  std::uint32_t longest = kMaxPieceBytes;
  std::uint32_t written = 0;

  static std::vector<std::uint8_t> piece(std::uint64_t seed, std::uint32_t number, std::uint32_t longest) {
    const std::uint64_t drawn = mix64(seed * 1000 + number);
    const std::uint32_t bound = drawn % 4 == 0 ? longest : std::min<std::uint32_t>(longest, 200);
    return message::pattern((drawn >> 8) % (bound + 1), drawn);
  }
  bool write(CallStream& stream) {
    while (written < pieces && stream.try_write(piece(seed, written, longest))) ++written;
    return written == pieces;
  }
};

/// Reads them, and compares every byte.
struct PieceReader {
  std::uint64_t seed;
  std::uint32_t longest = kMaxPieceBytes;
  std::uint32_t read = 0;
  bool ended = false;

  /// Up to `most` pieces.
  void take(CallStream& stream, std::uint32_t most = 1000) {
    std::span<const std::uint8_t> piece;
    for (StreamRead found; most != 0 && (found = stream.try_read(piece)) != StreamRead::nothing; --most) {
      ended = found == StreamRead::end;
      if (ended) return;
      const std::vector<std::uint8_t> wanted = PieceWriter::piece(seed, read, longest);
      EXPECT_TRUE(std::ranges::equal(piece, wanted)) << "piece " << read << " of " << piece.size();
      ++read;
    }
  }
};

}  // namespace warpline::rpc
