// SPDX-License-Identifier: Apache-2.0
// A sender whose receiver has another version of the plugin.
#include "nccl/plugin.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nccl/abi.h"
#include "nccl/socket_nic.h"
#include "nccl/wire.h"
#include "warpline/rpc/message_host.h"

namespace warpline::nccl {
namespace {

constexpr Ipv4Address kLoopback{{127, 0, 0, 1}};

void log_nothing(LogLevel, unsigned long, const char*, int, const char*, ...) {}

Result<Nics> find_loopback(const Settings& settings) {
  Settings changed = settings;
  changed.interfaces = "=lo";
  changed.family = "AF_INET";
  return find_socket_nics(changed);
}

struct Sent {
  Code code;
  std::vector<std::uint8_t> bytes;
};

/// Connects to a receiver that sends this when it is joined, and sends to it. Returns what ends that.
Status connect_and_send(const std::vector<Sent>& answers) {
  auto receiver = rpc::MessageHost::open({.local = {kLoopback, 0}});
  EXPECT_TRUE(receiver.ok());
  receiver->listen([&](const message::MessageEvent& event) {
    if (event.kind != message::EventKind::message) return;
    for (const Sent& answer : answers) {
      const message::ConstBuffer bytes{answer.bytes.data(), static_cast<std::uint32_t>(answer.bytes.size())};
      (void)receiver->endpoint().send(event.session, bytes,
                                      {.code = static_cast<std::uint16_t>(answer.code), .copy = true}, receiver->now());
    }
  });
  Handle to{.lanes = 1, .rails = 1, .listener = 1};
  to.addresses[0] = kLoopback;
  to.ports[0] = receiver->port();
  std::array<std::uint8_t, kHandleBytes> handle;
  write_handle(to, handle);
  Plugin plugin(find_loopback);
  EXPECT_EQ(plugin.init(log_nothing), Status::success);
  void* connected = nullptr;
  Status status = Status::success;
  for (; status == Status::success && connected == nullptr; (void)receiver->turn())
    status = plugin.connect(0, handle.data(), &connected);
  if (connected == nullptr) return status;
  auto& sender = static_cast<SendConnection&>(*static_cast<Connection*>(connected));
  const std::array<std::uint8_t, 8> bytes{};
  for (Request* request = nullptr; status == Status::success && request == nullptr; (void)receiver->turn())
    status = sender.send(bytes.data(), bytes.size(), 0, &request);
  EXPECT_EQ(plugin.close_connection(connected), Status::success);
  return status;
}

std::vector<std::uint8_t> bytes_of(const Welcome& welcome) {
  const auto bytes = write_welcome(welcome);
  return {bytes.begin(), bytes.end()};
}

TEST(OtherVersion, AWelcomeThatCannotBeReadEndsTheConnection) {
  EXPECT_EQ(connect_and_send({{Code::welcome, std::vector<std::uint8_t>(kWelcomeBytes + 4)}}), Status::remote_error);
  EXPECT_EQ(connect_and_send({{Code::welcome, bytes_of({.early_bytes = kMostEarlyBytes + 1})}}), Status::remote_error);
}

TEST(OtherVersion, AGroupThatCannotBeReadEndsTheConnection) {
  EXPECT_EQ(connect_and_send({{Code::welcome, bytes_of({})}, {Code::posted, std::vector<std::uint8_t>(12)}}),
            Status::remote_error);
}

TEST(OtherVersion, AGroupThatIsReadTakesTheTransfer) {
  std::array<std::uint8_t, kMaxPostedBytes> bytes{};
  const Posted one{.sequence = 0, .count = 1, .bytes = {64}, .tags = {0}};
  const std::size_t length = write_posted(one, bytes);
  EXPECT_EQ(connect_and_send({{Code::welcome, bytes_of({})}, {Code::posted, {bytes.begin(), bytes.begin() + length}}}),
            Status::success);
}

}  // namespace
}  // namespace warpline::nccl
