// SPDX-License-Identifier: Apache-2.0
// Sessions with a key go where their peer goes, and nobody else takes them anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/protection/protected_endpoints_testing.h"

namespace warpline::protection {
namespace {

message::PeerAddress address(std::uint8_t last, std::uint16_t port = 4000) {
  return message::peer_address(Ipv4Address{{10, 0, 77, last}}, port);
}

bool checks_path(const Bytes8& bytes) {
  packet::MessageHeader header;
  return is_of_session(bytes) &&
         packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header) == packet::MessageParse::ok &&
         header.checks_path();
}

class AddressChange : public Protected {
 protected:
  void begin() { connected(config(&kKey, client_protection_), config(&kKey, server_protection_)); }
  void connected(const message::EndpointConfig& client, const message::EndpointConfig& server) {
    Protected::begin(client, server, {});
    std::tie(session_, there_) = net_->connect(*client_, *server_);
    EXPECT_TRUE(works());
    net_->run_for(Nanos{message::kMs});
  }
  bool works(std::size_t length = 100) {
    Bytes8 answer;
    const Bytes8 question = message::pattern(length, length);
    return ask(session_, question, answer).status == message::MessageStatus::ok && answer == question;
  }
  [[nodiscard]] message::SessionFacts there() const { return server_->endpoint.facts(there_); }
  [[nodiscard]] const message::EndpointCounters& counters() const { return server_->endpoint.counters(); }
  /// What the client sends next, which the network loses.
  Bytes8 next_packet() {
    Bytes8 packet;
    const auto tap = net_->tap;
    net_->tap = [&](const message::Loopback::Host& from, Bytes8& bytes) {
      if (&from == client_ && packet.empty()) packet = bytes;
      return true;
    };
    EXPECT_EQ(client_->endpoint.send(session_, {kText.data(), kText.size()}, {}, net_->now).status,
              message::CallStatus::ok);
    net_->settle();
    net_->tap = tap;
    EXPECT_TRUE(is_of_session(packet));
    return packet;
  }
  /// Bytes that the server sends to this address now.
  std::size_t sent_to(const message::PeerAddress& to) {
    std::vector<std::uint8_t> head(2048);
    std::size_t sum = 0;
    for (;;) {
      message::Outgoing out;
      out.head = head.data();
      out.head_capacity = 2048;
      if (server_->endpoint.transmit({&out, 1}, net_->now) == 0) return sum;
      if (out.to == to) sum += out.length();
    }
  }

  static constexpr std::array<std::uint8_t, 16> kText = {1, 2, 3};
  message::SessionId session_;
  message::SessionId there_;
};

TEST_F(AddressChange, ASessionFollowsItsPeer) {
  begin();
  for (std::uint8_t last = 1; last < 6; ++last) {
    client_->address = address(last, static_cast<std::uint16_t>(4000 + last % 2));
    EXPECT_TRUE(works());
    EXPECT_EQ(there().peer, client_->address);
  }
  EXPECT_EQ(counters().path_changes.get(), 5U);
  EXPECT_TRUE(server_->events.empty());
  EXPECT_EQ(handled(), 6U) << "each once";
}

TEST_F(AddressChange, ToIpv6AndBack) {
  begin();
  const message::PeerAddress before = client_->address;
  Ipv6Address v6;
  v6.bytes = {0xfd, 0, 1};
  client_->address = message::peer_address(v6, 9);
  EXPECT_TRUE(works());
  client_->address = before;
  EXPECT_TRUE(works());
  EXPECT_EQ(there().peer, before);
}

TEST_F(AddressChange, MessagesUnderWayArriveOnceThoughThePathIsNarrower) {
  begin();
  ASSERT_GT(there().datagram_bytes, 1200U);
  client_->events.clear();
  const Bytes8 question = message::pattern(1'000'000, 7);
  Bytes8 answer(question.size());
  ASSERT_EQ(client_->endpoint.request(session_, {question.data(), 1'000'000}, {answer.data(), 1'000'000}, {}, net_->now)
                .status,
            message::CallStatus::ok);
  const std::uint64_t before = handled();
  ASSERT_TRUE(net_->run([&] { return handled() != before; })) << "now comes the answer";
  net_->run_for(Nanos{50'000});
  client_->address = address(3);
  std::uint64_t moved = 0;
  net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
    moved = counters().path_changes.get();
    return bytes.size() > 1300;
  };
  ASSERT_TRUE(net_->run([&] { return !client_->events.empty(); }));
  EXPECT_EQ(client_->events.front().status, message::MessageStatus::ok);
  EXPECT_EQ(answer, question);
  EXPECT_EQ(moved, 1U);
  EXPECT_EQ(counters().black_holes.get(), 0U) << "the new path was begun with as short datagrams as pass everywhere";
  EXPECT_LE(there().datagram_bytes, 1300U);
}

TEST_F(AddressChange, OfThePathNothingIsKnownAtAnotherAddressAllAtAnotherPort) {
  begin();
  EXPECT_TRUE(works(1'000'000));
  const message::SessionFacts before = there();
  ASSERT_GT(before.window_bytes, message::CcConfig{}.initial_window_bytes);
  ASSERT_NE(before.smoothed_rtt.value, 0);
  const auto moved_to = [&](message::PeerAddress to) {
    const std::uint64_t changes = counters().path_changes.get();
    client_->address = to;
    EXPECT_EQ(client_->endpoint.send(session_, {kText.data(), kText.size()}, {}, net_->now).status,
              message::CallStatus::ok);
    EXPECT_TRUE(net_->run([&] { return counters().path_changes.get() != changes; }));
    return there();
  };
  moved_to(address(0, 5000));
  EXPECT_TRUE(works(1'000'000));
  const message::SessionFacts here = there();
  const message::SessionFacts other_port = moved_to(address(0, 5001));
  EXPECT_EQ(other_port.min_rtt, here.min_rtt);
  EXPECT_EQ(other_port.window_bytes, here.window_bytes);
  EXPECT_EQ(other_port.datagram_bytes, here.datagram_bytes);
  const message::SessionFacts other_address = moved_to(address(1, 5001));
  EXPECT_EQ(other_address.smoothed_rtt.value, 0);
  EXPECT_EQ(other_address.window_bytes, message::CcConfig{}.initial_window_bytes);
  EXPECT_EQ(other_address.datagram_bytes, 1200U);
}

TEST_F(AddressChange, WhoHasMovedKnowsNothingOfItsPathEither) {
  begin();
  const double initial = message::CcConfig{}.initial_window_bytes;
  const auto here = [&] { return client_->endpoint.facts(session_); };
  for (const message::PeerAddress& to : {address(1), address(1, 4001)}) {  // which of the two it was nobody tells it
    EXPECT_TRUE(works(1'000'000));
    ASSERT_GT(here().window_bytes, 2 * initial);
    const std::uint64_t changes = counters().path_changes.get();
    client_->address = to;
    EXPECT_EQ(client_->endpoint.send(session_, {kText.data(), kText.size()}, {}, net_->now).status,
              message::CallStatus::ok);
    EXPECT_TRUE(net_->run([&] { return counters().path_changes.get() != changes; }));
    EXPECT_LE(here().window_bytes, initial);
    EXPECT_NE(here().smoothed_rtt.value, 0);
  }
  EXPECT_TRUE(works(1'000'000));
}

TEST_F(AddressChange, WhoSendsACopyFirstMovesNothingAndHasNobodyFlooded) {
  begin();
  const message::PeerAddress peer = client_->address;
  const message::PeerAddress victim = address(66);
  std::size_t copied = 0;
  std::size_t flooded = 0;
  for (int i = 0; i < 200; ++i) {
    const Bytes8 packet = next_packet();  // somebody on the path was quicker, and says that he is the victim
    net_->inject(*server_, victim, packet);
    copied += packet.size();
    flooded += sent_to(victim);
    net_->inject(*server_, peer, packet);
    net_->run_for(Nanos{5 * message::kMs});
  }
  EXPECT_GT(flooded, 0U) << "it was asked";
  EXPECT_LT(flooded, copied);
  EXPECT_EQ(counters().path_changes.get(), 0U);
  EXPECT_EQ(there().peer, peer);
  EXPECT_TRUE(works());
}

/// RFC 9000, section 9.3.3: somebody on the path passes packets on by an address of his own.
TEST_F(AddressChange, WhoPassesThePeersPacketsOnHasThemOnlyAsLongAsThePeerSaysNothing) {
  begin();
  const Bytes8 packet = next_packet();
  net_->inject(*server_, address(66), packet);
  std::vector<std::uint8_t> head(2048);
  message::Outgoing out;
  out.head = head.data();
  out.head_capacity = 2048;
  Bytes8 challenge;
  while (server_->endpoint.transmit({&out, 1}, net_->now) != 0) {
    if (out.to == address(66)) challenge.assign(head.begin(), head.begin() + out.head_length);
  }
  ASSERT_TRUE(checks_path(challenge));
  Bytes8 answer;
  net_->tap = [&](const message::Loopback::Host& from, Bytes8& bytes) {
    const bool keeps = &from == client_ && checks_path(bytes) && answer.empty();
    if (keeps) answer = bytes;
    return keeps;
  };
  net_->inject(*client_, address(66), challenge);
  net_->settle();
  ASSERT_FALSE(answer.empty()) << "it goes to the server's address, by its own way";
  net_->inject(*server_, address(67), answer);
  EXPECT_EQ(counters().dropped(message::MessageDrop::bad_path_response), 1U);
  EXPECT_EQ(there().peer, client_->address);
  net_->inject(*server_, address(66), answer);
  EXPECT_EQ(there().peer, address(66));
  EXPECT_TRUE(works());
  EXPECT_EQ(there().peer, client_->address);
  EXPECT_EQ(client_->endpoint.facts(session_).peer, server_->address);
}

TEST_F(AddressChange, NoByteOfAChallengeOrAnAnswerMayChange) {
  begin();
  std::vector<Bytes8> checks;
  net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
    if (!checks_path(bytes)) return false;
    checks.push_back(bytes);
    for (std::size_t at = 2; at < bytes.size(); ++at) {
      Bytes8 changed = bytes;
      changed[at] ^= 0x40;
      net_->inject(*server_, client_->address, changed);
      net_->inject(*client_, server_->address, changed);
    }
    return false;
  };
  client_->address = address(5);
  EXPECT_TRUE(works());
  EXPECT_EQ(checks.size(), 2U);
  EXPECT_EQ(counters().path_changes.get(), 1U);
  EXPECT_GT(counters().dropped(message::MessageDrop::not_authentic), 0U);
  for (const Bytes8& again : checks) {  // as they were, later, from elsewhere
    net_->inject(*server_, address(6), again);
    net_->inject(*client_, address(6), again);
  }
  net_->run_for(Nanos{10 * message::kMs});
  EXPECT_EQ(there().peer, address(5));
  EXPECT_EQ(counters().path_changes.get(), 1U);
  EXPECT_TRUE(works());
}

TEST_F(AddressChange, TheApplicationIsAskedAboutTheNewAddress) {
  message::EndpointConfig server = config(&kKey, server_protection_);
  server.authorizer.allows = [](void*, const message::PeerAddress& peer, message::KeyId key) {
    return key != 0 && peer != address(66);
  };
  connected(config(&kKey, client_protection_), server);
  const message::PeerAddress first = client_->address;
  client_->address = address(66);
  EXPECT_EQ(client_->endpoint.send(session_, {kText.data(), kText.size()}, {}, net_->now).status,
            message::CallStatus::ok);
  net_->run_for(Nanos{100 * message::kMs});
  EXPECT_EQ(there().peer, first);
  EXPECT_GT(counters().path_changes_refused.get(), 0U);
  EXPECT_EQ(counters().path_challenges.get(), 0U);
  client_->address = address(65);
  EXPECT_TRUE(works());
  EXPECT_EQ(there().peer, address(65));
}

/// Losses, repetitions and delays, and a peer that is elsewhere every few milliseconds.
TEST_F(AddressChange, AllArrivesOnceFromWhoNeverStays) {
  Protected::begin(&kKey, &kKey, {.loss = 10'000, .duplicate = 20'000, .reorder = 100'000});
  std::tie(session_, there_) = net_->connect(*client_, *server_);
  std::uint64_t asked = 0;
  for (std::uint8_t i = 0; i < 200; ++i) {
    client_->address = address(i, static_cast<std::uint16_t>(4000 + i % 3));
    EXPECT_TRUE(works(1 + i * std::size_t{i} * 2));
    ++asked;
  }
  EXPECT_EQ(handled(), asked);
  EXPECT_TRUE(server_->events.empty());
}

}  // namespace
}  // namespace warpline::protection
