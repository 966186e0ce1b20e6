// SPDX-License-Identifier: Apache-2.0
// Endpoints with several keys, which change while their sessions live.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/protection/protected_endpoints_testing.h"

namespace warpline::protection {
namespace {

constexpr AesKey kOld = {1, 2, 3};
constexpr AesKey kNew = {9, 8, 7};

std::shared_ptr<const KeySet> set_of(const std::vector<AesKey>& secrets) {
  std::vector<GivenKey> keys;
  for (const AesKey& secret : secrets) keys.push_back({secret, {}});
  return *KeySet::make(keys);
}

message::KeyId id_of(const AesKey& secret) { return set_of({secret})->keys().front().id; }

class Rotation : public Protected {
 protected:
  void begin_with(const std::vector<AesKey>& client, const std::vector<AesKey>& server) {
    client_keys_ = std::make_shared<Keys>(set_of(client));
    server_keys_ = std::make_shared<Keys>(set_of(server));
    begin(client_keys_, server_keys_);
  }

  void expect_alive(message::SessionId session) {
    const Bytes8 question = message::pattern(3000, ++asked_);
    Bytes8 answer;
    EXPECT_EQ(ask(session, question, answer).status, message::MessageStatus::ok);
    EXPECT_EQ(answer, question);
  }

  std::shared_ptr<Keys> client_keys_;
  std::shared_ptr<Keys> server_keys_;
  std::uint64_t asked_ = 0;
};

TEST_F(Rotation, WithoutABreak) {
  begin_with({kOld}, {kOld});
  const auto [first, first_there] = net_->connect(*client_, *server_);
  expect_alive(first);
  server_keys_->replace(set_of({kOld, kNew}));
  const auto [second, second_there] = net_->connect(*client_, *server_);
  client_keys_->replace(set_of({kNew}));
  const auto [third, third_there] = net_->connect(*client_, *server_);
  server_keys_->replace(set_of({kNew}));
  const auto [fourth, fourth_there] = net_->connect(*client_, *server_);
  for (const message::SessionId session : {first, second, third, fourth}) expect_alive(session);
  EXPECT_EQ(server_protection_->key(first_there.index), id_of(kOld));
  EXPECT_EQ(server_protection_->key(second_there.index), id_of(kOld));
  EXPECT_EQ(server_protection_->key(third_there.index), id_of(kNew));
  EXPECT_EQ(server_protection_->key(fourth_there.index), id_of(kNew));
  EXPECT_EQ(client_protection_->key(first.index), id_of(kOld));
  EXPECT_EQ(client_protection_->key(fourth.index), id_of(kNew));
  EXPECT_EQ(dropped(*client_) + dropped(*server_), 0U);
  EXPECT_EQ(client_->endpoint.counters().sessions_lost.get() + server_->endpoint.counters().sessions_lost.get(), 0U);
}

TEST_F(Rotation, TheApplicationLearnsWhichKeyAPeerHasAndMayRefuseIt) {
  struct AllButOne {
    message::KeyId refused;
    static bool allows(void* context, const message::PeerAddress& /*peer*/, message::KeyId key) {
      return key != static_cast<AllButOne*>(context)->refused;
    }
  } all_but_one{id_of(kOld)};
  for (const AesKey& own : {kNew, kOld}) {
    client_protection_ = *make_protection(own, kSessions);
    server_protection_ = *make_protection(std::make_shared<Keys>(set_of({kOld, kNew})), kSessions);
    message::EndpointConfig client = config();
    client.protection = client_protection_.get();
    message::EndpointConfig server = config();
    server.protection = server_protection_.get();
    server.authorizer = {&all_but_one, AllButOne::allows};
    begin(client, server, {});
    if (own == kNew) {
      const auto [session, there] = net_->connect(*client_, *server_);
      expect_alive(session);
      EXPECT_EQ(server_->endpoint.facts(there).key, id_of(kNew));
      EXPECT_EQ(client_->endpoint.facts(session).key, id_of(kNew));
      ASSERT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
      EXPECT_EQ(client_->endpoint.facts(session).key, 0U);
    } else {
      (void)client_->endpoint.connect(server_->address, {}, net_->now);
      ASSERT_TRUE(net_->run([this] { return !client_->events.empty(); }));
      EXPECT_EQ(client_->events.front().reason, message::LossReason::not_accepted);
      EXPECT_EQ(server_->endpoint.counters().dropped(message::MessageDrop::not_authorized), 1U);
      EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions);
    }
    net_.reset();
  }
}

TEST_F(Rotation, ARemovedKeyOpensNothing) {
  begin_with({kOld}, {kOld, kNew});
  const message::SessionId session = net_->connect(*client_, *server_).first;
  server_keys_->replace(set_of({kNew}));
  expect_alive(session);
  ASSERT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{1'000'000});
  client_->events.clear();
  ASSERT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  ASSERT_TRUE(net_->run([this] { return !client_->events.empty(); }));
  EXPECT_EQ(client_->events.front().reason, message::LossReason::not_accepted);
  EXPECT_EQ(server_->endpoint.counters().dropped(message::MessageDrop::unknown_key), 1U);
  EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions);
  client_keys_->replace(set_of({kNew}));
  ASSERT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  expect_alive(session);
}

TEST_F(Rotation, AHandshakeUnderWayGoesOnWithTheKeyThatItNamed) {
  // Replaced at the client before its first, second, ... packet arrives; the server has both.
  for (int at = 0; at < 4; ++at) {
    begin_with({kOld}, {kNew, kOld});
    int packets = 0;
    net_->tap = [&](const message::Loopback::Host&, Bytes8&) {
      if (packets++ == at) client_keys_->replace(set_of({kNew}));
      return false;
    };
    const auto [session, there] = net_->connect(*client_, *server_);
    expect_alive(session);
    EXPECT_EQ(server_protection_->key(there.index), id_of(kOld)) << at;
    net_.reset();
  }
}

TEST_F(Rotation, EachClientHasAKeyAndTheHelloNamesItAlone) {
  // Whose bytes do not come up by chance, as {5} does where a random byte is followed by zeros.
  std::vector<AesKey> all(3);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t b = 0; b < all[i].size(); ++b) all[i][b] = static_cast<std::uint8_t>(0x35 * b + 0x71 * i + 0x4d);
  }
  for (const AesKey& own : all) {
    begin_with({own}, all);
    std::vector<Bytes8> hellos;
    net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
      if (packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::hello) hellos.push_back(bytes);
      return false;
    };
    const auto [session, there] = net_->connect(*client_, *server_);
    expect_alive(session);
    EXPECT_EQ(server_protection_->key(there.index), id_of(own));
    ASSERT_EQ(hellos.size(), 2U);
    for (const Bytes8& bytes : hellos) {
      packet::MessageHello hello;
      ASSERT_EQ(packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), hello), packet::MessageParse::ok);
      EXPECT_EQ(hello.key, id_of(own));
      EXPECT_EQ(std::search(bytes.begin(), bytes.end(), own.begin(), own.begin() + 4), bytes.end());
    }
    net_.reset();
  }
}

}  // namespace
}  // namespace warpline::protection
