// SPDX-License-Identifier: Apache-2.0
// The client and the server of `message` with all their messages where the CPU cannot look.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "warpline/handoff/lanes/hash_pieces.h"
#include "warpline/message/receive_memory.h"
#include "warpline/service/worker.h"
#include "warpline/transport/device_memory_testing.h"
#include "warpline/transport/device_stage.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::service {
namespace {

constexpr std::uint32_t kLongest = 300'000;
constexpr std::size_t kPatternRoom = 1 << 20;
constexpr std::size_t kRoom = 16 << 20;

/// Hashes at once, as a GPU would.
class HashLane final : public PieceLane {
 public:
  explicit HashLane(const UnreachableMemory& memory) : memory_(memory) {}
  [[nodiscard]] bool submit(std::span<const Piece> batch) override {
    if (broken) return false;
    for (const Piece& piece : batch) {
      Segment segments[] = {{static_cast<std::uint8_t*>(piece.to), 8, 1, Verdict::forward},
                            {memory_.reach(piece.from), static_cast<std::uint32_t>(piece.length), 0, Verdict::forward}};
      (void)handoff::HashPieces()({segments, 2, 0});
    }
    ++batches_;
    return true;
  }
  [[nodiscard]] std::uint64_t landed() override { return batches_; }
  [[nodiscard]] std::optional<Error> failure() const override {
    if (!broken) return std::nullopt;
    return environment_error("the lane", "it is broken");
  }
  bool broken = false;

 private:
  const UnreachableMemory& memory_;
  std::uint64_t batches_ = 0;
};

TEST(MessageHasher, SaysOfBytesOutOfReachWhatMessageHashSaysOfOthers) {
  const UnreachableMemory memory(4 << 20);
  std::uint8_t* const device = memory.device().data();
  for (std::size_t i = 0; i < memory.device().size(); ++i)
    memory.reach(device)[i] = static_cast<std::uint8_t>(mix64(i));
  HashLane lane(memory);
  std::uint64_t words[600];  // more than a batch, less than the longest has blocks
  MessageHasher hasher(lane, words);
  for (const std::uint32_t length : {0U, 1U, 31U, 4095U, 4096U, 4097U, 1'048'576U, 1'048'577U, 3'999'999U}) {
    for (const std::uint32_t offset : {0U, 1U, 8U}) {
      EXPECT_EQ(hasher.hash(device + offset, length), message_hash(memory.reach(device + offset), length)) << length;
    }
  }
  lane.broken = true;
  EXPECT_EQ(hasher.hash(device, 5000), std::nullopt);
}

TEST(MessageHash, DependsOnEveryByteAndItsPlace) {
  std::vector<std::uint8_t> bytes(10'000, 1);
  const std::uint64_t hash = message_hash(bytes.data(), 10'000);
  EXPECT_NE(message_hash(bytes.data(), 9'999), hash);
  for (const std::size_t at : {0UL, 31UL, 4095UL, 4096UL, 9'999UL}) {
    bytes[at] = 2;
    EXPECT_NE(message_hash(bytes.data(), 10'000), hash) << at;
    bytes[at] = 1;
  }
  // Blocks in another order.
  for (std::uint32_t i = 0; i < kHashBlock; ++i) bytes[i] = 7;
  const std::uint64_t first = message_hash(bytes.data(), 2 * kHashBlock);
  for (std::uint32_t i = 0; i < kHashBlock; ++i) std::swap(bytes[i], bytes[kHashBlock + i]);
  EXPECT_NE(message_hash(bytes.data(), 2 * kHashBlock), first);
}

/// One end: a pattern and room for what is received out of reach, lanes, and a socket.
struct End {
  explicit End(const MessagePattern& pattern) {
    std::memcpy(memory.reach(memory.device().data()), pattern.slice(0), MessagePattern::bytes_for(kLongest));
    auto opened = transport::UdpSocket::open({.local = {Ipv4Address{{127, 0, 0, 1}}, 0}});
    EXPECT_TRUE(opened.ok());
    socket = std::move(opened).value();
    copies.eager = true;
    stage.emplace(*socket, copies);
    copied = MessagePattern::copied_to(memory.device().data());
    room = memory.device().subspan(kPatternRoom);
  }
  [[nodiscard]] MessageStore store() { return {&copied, room, true, &hasher}; }
  [[nodiscard]] message::EndpointConfig config(std::uint8_t number, bool server) {
    message::EndpointConfig config;
    config.secret.emplace()[0] = number;
    config.accept = server;
    config.max_sessions = 8;
    config.peer_timeout = config.connect_timeout = Nanos{60'000'000'000};  // a busy machine
    config.placer = stage->placer();
    if (server) {
      blocks.emplace(room);
      config.buffers = {
          this,
          [](void* end, message::SessionId, std::uint16_t, std::uint32_t length) {
            return message::MutableBuffer{static_cast<End*>(end)->blocks->take(length), length, true};
          },
          [](void* end, message::MutableBuffer buffer) { static_cast<End*>(end)->blocks->give(buffer.data); }};
    }
    return config;
  }

  UnreachableMemory memory{kPatternRoom + kRoom};
  transport::LazyLane copies{memory};
  HashLane hashes{memory};
  std::uint64_t words[64];
  MessageHasher hasher{hashes, words};
  std::unique_ptr<transport::UdpSocket> socket;
  std::optional<transport::DeviceStage> stage;
  std::optional<message::ReceiveMemory> blocks;
  MessagePattern copied;
  std::span<std::uint8_t> room;
};

struct Case {
  MessageService service = MessageService::echo;
  std::uint32_t length = 0;
  bool wrong = false;  ///< the server's pattern, or the client's, is not what it has to be
};

class DeviceRun : public ::testing::TestWithParam<Case> {};

TEST_P(DeviceRun, IsVerifiedByWhoReachesTheBytes) {
  const Case& c = GetParam();
  constexpr std::uint64_t kRequests = 60;
  std::vector<std::uint8_t> bytes(MessagePattern::bytes_for(kLongest));
  const MessagePattern pattern(bytes);
  End there(pattern);
  End here(pattern);
  for (End* const end : {&there, &here}) {
    if (c.wrong) end->memory.reach(end->copied.slice(20))[5] ^= 1;
  }
  const transport::NanoClock clock;
  std::atomic<bool> stop{false};
  const std::atomic<bool> never{false};
  const message::EndpointConfig server_config = there.config(1, true);
  MessageServer server(pattern, kLongest, server_config, stop, there.store());
  MessageClient::Plan plan;
  plan.service = c.service;
  plan.length = c.length;
  plan.outstanding = 3;
  plan.peers.assign(2, message::peer_address(Ipv4Address{{127, 0, 0, 1}}, there.socket->port()));
  plan.requests = kRequests;
  plan.verify = true;
  MessageClient client(plan, pattern, never, here.store());
  MessageWorker serving(std::move(message::Endpoint::create(server_config, clock.now())).value(), *there.stage, server,
                        clock);
  MessageWorker asking(std::move(message::Endpoint::create(here.config(2, false), clock.now())).value(), *here.stage,
                       client, clock);
  std::thread thread([&] { serving.run(); });
  asking.run();
  stop = true;
  thread.join();
  EXPECT_EQ(client.tally().ok(), kRequests);
  EXPECT_EQ(client.tally().checked.get(), kRequests);
  EXPECT_EQ(client.tally().bad.get() != 0, c.wrong);
  EXPECT_EQ(server.tally().not_served.get(), 0U);
  const bool answers = c.service != MessageService::sink_hash;
  EXPECT_EQ(here.stage->copies().placed_bytes.get() >= kRequests * c.length, answers);
  if (c.length > message::kInlineBytes && c.service != MessageService::source) {
    EXPECT_GE(there.stage->copies().placed_bytes.get(), kRequests * c.length);
    EXPECT_GE(here.stage->copies().fetched_bytes.get(), kRequests * c.length);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Services, DeviceRun,
    ::testing::Values(Case{MessageService::echo, 100}, Case{MessageService::echo, 129},
                      Case{MessageService::echo, kLongest}, Case{MessageService::sink_hash, kLongest},
                      Case{MessageService::source, kLongest}, Case{MessageService::echo, 5000, true},
                      Case{MessageService::sink_hash, 5000, true}, Case{MessageService::source, 5000, true}));

}  // namespace
}  // namespace warpline::service
