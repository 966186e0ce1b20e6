// SPDX-License-Identifier: Apache-2.0
// Calls in one piece and in many between a MultiEndpoint and several MessageHosts, over sockets and over the queues of
// ports, encrypted and not: every byte is right, a server that drains has answered all, and no buffer stays behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/protection.h"
#include "warpline/port/ring_pair.h"
#include "warpline/port/vnic.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/rpc/multi_endpoint.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline {
namespace {

using message::CallStatus;
using message::MessageStatus;
using rpc::CallStream;
using rpc::MessageHost;

constexpr std::uint16_t kServers = 2;
constexpr std::uint16_t kClients = 3;
constexpr std::uint16_t kServerPort = 7000;
constexpr std::uint16_t kClientPort = 50'000;
constexpr std::uint32_t kSessions = 8;
constexpr Nanos kPatient{60'000'000'000};

enum class Carrier { sockets, vnic, rings };

struct Carried {
  const char* name;
  Carrier carrier = Carrier::sockets;
  bool encrypted = false;
  const char* faults = "";  ///< of the software NICs
};

std::vector<std::uint8_t> bytes_for(std::uint64_t seed, std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>(mix64(seed + i / 8) >> (i % 8 * 8));
  return bytes;
}

class CallsOver : public testing::TestWithParam<Carried> {
 protected:
  void SetUp() override {
    const Carried& how = GetParam();
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
    if (how.carrier != Carrier::sockets) GTEST_SKIP() << "DPDK's rings keep order by fences, which TSan does not see";
#endif
#endif
    if (how.carrier == Carrier::vnic && port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
    if (how.carrier != Carrier::sockets) {
      ASSERT_NO_FATAL_FAILURE(open_ports());
    }
    ASSERT_NO_FATAL_FAILURE(open_server());
    for (std::uint16_t i = 0; i < kClients; ++i) ASSERT_NO_FATAL_FAILURE(open_client(i));
  }

  void TearDown() override {
    clients_.clear();
    server_.reset();
    // What peers sent last is in the rings still.
    for (const auto& port : ports_) {
      for (std::uint16_t i = 0; GetParam().carrier == Carrier::rings && i < kClients; ++i) {
        while (!port->queue(i).receive(Nanos{0}).empty()) {
        }
      }
    }
    for (const auto& port : ports_) port->close();
    for (const auto& port : ports_) EXPECT_EQ(port->leaked(), 0U);
  }

  static MessageHost::Settings settings() {
    MessageHost::Settings settings;
    settings.local = {Ipv4Address{{127, 0, 0, 1}}, 0};
    settings.endpoint.max_sessions = kSessions;
    settings.endpoint.receive_bytes = 8 << 20;
    settings.endpoint.peer_timeout = settings.endpoint.connect_timeout = kPatient;
    settings.streams.streams = 8;
    return settings;
  }
  message::PacketProtection* protection() {
    if (!GetParam().encrypted) return nullptr;
    auto made = protection::make_protection(protection::AesKey{1, 2, 3}, kSessions);
    EXPECT_TRUE(made.ok());
    return protections_.emplace_back(std::move(made).value()).get();
  }
  void open_ports() {
    std::optional<std::uint16_t> ids[2];
    if (GetParam().carrier == Carrier::rings) {
      const auto pair = *port::make_ring_pair(kClients, 512, runtime::kAnyNode);
      ids[0] = pair.first;
      ids[1] = pair.second;
    }
    for (int side = 0; side < 2; ++side) {
      port::PortSettings port;
      port.spec = "net_vnic" + std::to_string(side) + ",wire=net_vnic" + std::to_string(1 - side) + GetParam().faults;
      port.rx_ring = port.tx_ring = 256;
      port.addresses = {{Ipv4Address{{10, 0, 0, static_cast<std::uint8_t>(side + 1)}}, 24}};
      transport::MessagePortConfig config;
      // Rings have as many queues at either end.
      config.workers = side == 1 || ids[0] ? kClients : kServers;
      config.udp_port = side == 0 ? kServerPort : kClientPort;
      config.own_ports = side == 1;
      config.max_sessions = kSessions;
      config.pool.cache = 32;
      auto opened = transport::MessagePort::open(port, config, ids[side]);
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      ports_.push_back(std::move(opened).value());
    }
  }
  void open_server() {
    rpc::MultiEndpoint::Settings multi;
    multi.host = settings();
    multi.threads = kServers;
    multi.adjust = [this](std::uint32_t, message::EndpointConfig& config) { config.protection = protection(); };
    std::vector<transport::Transport*> queues;
    for (std::uint16_t i = 0; !ports_.empty() && i < (GetParam().carrier == Carrier::rings ? kClients : kServers); ++i)
      queues.push_back(&ports_[0]->queue(i));
    auto opened = queues.empty() ? rpc::MultiEndpoint::open(multi) : rpc::MultiEndpoint::over(queues, multi);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    server_.emplace(std::move(opened).value());
    address_ = {Ipv4Address{{127, 0, 0, 1}}, server_->port()};
    if (!queues.empty()) address_ = {Ipv4Address{{10, 0, 0, 1}}, kServerPort};
    for (std::uint32_t i = 0; i < server_->threads(); ++i) {
      const auto send_back = [this](CallStream& stream, unsigned) {
        std::span<const std::uint8_t> piece;
        while (stream.read(piece) && stream.write(piece)) {
        }
        (void)stream.finish(7, stream.request());
        ++handled_;
      };
      ASSERT_TRUE(server_->host(i).take_streams_on_threads(2, send_back).ok());
    }
  }
  void open_client(std::uint16_t number) {
    MessageHost::Settings made = settings();
    made.endpoint.protection = protection();
    auto opened = ports_.empty() ? MessageHost::open(made) : MessageHost::over(ports_[1]->queue(number), made);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    clients_.push_back(std::make_unique<MessageHost>(std::move(opened).value()));
  }

  /// One thread: a call in pieces, each of which comes back, while it is written by another.
  void call_in_pieces(MessageHost& host, message::SessionId session, std::uint64_t seed) {
    constexpr std::uint32_t kPieces = 60;
    const auto piece_of = [&](std::uint64_t i) {
      return bytes_for(seed + i, mix64(seed + i) % (i % 4 == 0 ? rpc::kMaxPieceBytes + 1 : 300));
    };
    const std::vector<std::uint8_t> request = bytes_for(seed, 30);
    rpc::OpenedStream opened = host.open_stream({.session = session, .request = request});
    ASSERT_EQ(opened.status, CallStatus::ok);
    std::thread writes([&] {
      for (std::uint32_t i = 0; i < kPieces; ++i) EXPECT_TRUE(opened.stream.write(piece_of(i)));
      opened.stream.end_writing();
    });
    std::span<const std::uint8_t> piece;
    std::uint32_t read = 0;
    for (; opened.stream.read(piece); ++read) EXPECT_TRUE(std::ranges::equal(piece, piece_of(read)));
    writes.join();
    EXPECT_EQ(read, kPieces);
    const rpc::CallResult& result = opened.stream.wait();
    EXPECT_EQ(result.status, MessageStatus::ok);
    EXPECT_EQ(result.code, 7);
    EXPECT_TRUE(std::ranges::equal(std::span(result.data, result.length), request));
  }
  void call(MessageHost& host, message::SessionId session, std::uint64_t seed, std::uint32_t length) {
    const std::vector<std::uint8_t> request = bytes_for(seed, length);
    std::vector<std::uint8_t> room(length);
    rpc::PendingCall call;
    ASSERT_EQ(
        call.submit(host, {.session = session, .message = {request.data(), length}, .response = {room.data(), length}}),
        CallStatus::ok);
    EXPECT_EQ(call.wait().status, MessageStatus::ok);
    EXPECT_EQ(call.wait().length, length);
    EXPECT_EQ(room, request);
  }

  std::vector<std::unique_ptr<transport::MessagePort>> ports_;
  std::vector<std::unique_ptr<message::PacketProtection>> protections_;
  std::optional<rpc::MultiEndpoint> server_;
  std::vector<std::unique_ptr<MessageHost>> clients_;
  SocketAddress address_;
  std::atomic<std::uint32_t> handled_{0};
};

TEST_P(CallsOver, OfOnePieceAndOfManyHaveEveryByteRight) {
  constexpr std::uint32_t kStreams = 2;  // of a client, at once
  const auto echo = [](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    std::ranges::copy(request, room.begin());
    return std::optional<std::size_t>(request.size());
  };
  std::thread serving([&] { EXPECT_TRUE(server_->serve([&](std::uint32_t) { return echo; }).ok()); });
  std::vector<std::thread> loops;
  std::vector<std::thread> askers;
  for (std::uint64_t i = 0; i < kClients; ++i) {
    MessageHost& host = *clients_[i];
    const auto session = host.connect(address_);
    ASSERT_TRUE(session.ok());
    loops.emplace_back([&host] { host.run(); });
    for (std::uint64_t j = 0; j < kStreams; ++j)
      askers.emplace_back([&, i, j, session] { call_in_pieces(host, *session, mix64(10 * i + j)); });
    askers.emplace_back([&, i, session] {
      for (const std::uint32_t length : {0U, 1U, 32U, 128U, 129U, 1000U, 1472U, 20'000U, 65'536U})
        call(host, *session, mix64(100 * i + length), length);
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(handled_, kClients * kStreams);
  EXPECT_EQ(server_->total(&message::EndpointCounters::sessions_accepted), kClients);
  EXPECT_EQ(server_->dropped(message::MessageDrop::misdirected), 0U);
  EXPECT_EQ(server_->dropped(message::MessageDrop::not_authentic), 0U);
  server_->drain(kPatient);
  serving.join();
  for (std::uint32_t i = 0; i < server_->threads(); ++i) EXPECT_TRUE(server_->host(i).endpoint().drained());
  for (const auto& client : clients_) client->stop();
  for (std::thread& loop : loops) loop.join();
}

INSTANTIATE_TEST_SUITE_P(
    Transports, CallsOver,
    testing::Values(Carried{"Sockets", Carrier::sockets}, Carried{"SocketsEncrypted", Carrier::sockets, true},
                    Carried{"Vnic", Carrier::vnic}, Carried{"VnicEncrypted", Carrier::vnic, true},
                    Carried{"VnicWithFaults", Carrier::vnic, false, ",loss=0.01,duplicate=0.01,reorder=0.02"},
                    Carried{"VnicWithFaultsEncrypted", Carrier::vnic, true,
                            ",loss=0.01,duplicate=0.01,reorder=0.02,corrupt=0.005"},
                    Carried{"Rings", Carrier::rings}, Carried{"RingsEncrypted", Carrier::rings, true}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace warpline
