// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/message_host.h"

#include <gtest/gtest.h>

namespace warpline::rpc {
namespace {

/// Nothing comes or leaves any more, and what was under way never lands.
class FailedTransport final : public transport::Transport {
 public:
  std::span<const message::Datagram> receive(Nanos) override { return {}; }
  [[nodiscard]] bool settled() override { return false; }
  [[nodiscard]] bool failed() const override { return true; }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {}
};

TEST(MessageHost, EndsWhenItsTransportHasFailed) {
  FailedTransport transport;
  auto host = MessageHost::over(transport, {});
  ASSERT_TRUE(host.ok());
  const auto session = host->connect({Ipv4Address{{127, 0, 0, 1}}, 9});
  ASSERT_TRUE(session.ok());
  const auto answer = host->ask(*session, "anybody?");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::environment);
  host->serve([](auto, auto) { return std::nullopt; });
}

}  // namespace
}  // namespace warpline::rpc
