// SPDX-License-Identifier: Apache-2.0
// Two endpoints with a key between them, and somebody on the path who reads, repeats and changes their packets.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/protection/protected_endpoints_testing.h"

namespace warpline::protection {
namespace {

TEST_F(Protected, NothingOfAMessageIsReadableOnTheWay) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  for (const std::size_t length : {0, 1, 32, 128, 5000, 100'000}) {
    const Bytes8 question = message::pattern(length, length);
    Bytes8 answer;
    EXPECT_EQ(ask(session, question, answer).status, message::MessageStatus::ok);
    EXPECT_EQ(answer, question);
  }
  const Bytes8 secret = message::pattern(100'000, 100'000);
  std::size_t with_payload = 0;
  for (const Packet& packet : recorded_) {
    packet::MessageHeader header;
    ASSERT_EQ(packet::parse(packet.bytes.data(), static_cast<std::uint32_t>(packet.bytes.size()), header),
              packet::MessageParse::ok);
    EXPECT_TRUE(header.has(packet::kMessageProtected));
    if (header.payload_length < 16) continue;
    ++with_payload;
    const auto payload = packet.bytes.begin() + header.length();
    EXPECT_EQ(std::search(secret.begin(), secret.end(), payload, payload + 16), secret.end());
  }
  EXPECT_GT(with_payload, 100U);
  EXPECT_EQ(dropped(*client_) + dropped(*server_), 0U);
}

TEST_F(Protected, SmallMessagesTravelTogether) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  net_->run_for(Nanos{1'000'000});  // the path's probe is over, and datagrams are as long as they may be
  constexpr std::size_t kCount = 12;
  std::vector<Bytes8> questions(kCount), answers(kCount, Bytes8(100));
  for (std::size_t i = 0; i < kCount; ++i) {
    questions[i] = message::pattern(100, i);
    ASSERT_EQ(
        client_->endpoint.request(session, {questions[i].data(), 100}, {answers[i].data(), 100}, {}, net_->now).status,
        message::CallStatus::ok);
  }
  recorded_.clear();
  ASSERT_TRUE(net_->run([&] { return client_->events.size() == kCount; }));
  EXPECT_EQ(answers, questions);
  ASSERT_EQ(std::ranges::count(recorded_, true, &Packet::from_client), 2)
      << "eleven, and one for which it is too short";
  packet::MessageHeader header;
  const Bytes8& bundle = recorded_.front().bytes;
  ASSERT_EQ(packet::parse(bundle.data(), static_cast<std::uint32_t>(bundle.size()), header), packet::MessageParse::ok);
  EXPECT_TRUE(header.has(packet::kMessageBundle));
  EXPECT_EQ(std::search(bundle.begin(), bundle.end(), questions[1].begin(), questions[1].end()), bundle.end());
  EXPECT_EQ(dropped(*client_) + dropped(*server_), 0U);
}

TEST_F(Protected, LossesAndRepetitionsOfTheNetworkAreNoAttacks) {
  begin(&kKey, &kKey, {.loss = 30'000, .duplicate = 30'000, .reorder = 100'000});
  const message::SessionId session = net_->connect(*client_, *server_).first;
  Bytes8 all;
  for (std::size_t i = 0; i < 100; ++i) {
    const Bytes8 question = message::pattern(i * i * 5, i);
    all.insert(all.end(), question.begin(), question.end());
    Bytes8 answer;
    EXPECT_EQ(ask(session, question, answer).status, message::MessageStatus::ok);
    EXPECT_EQ(answer, question);
  }
  EXPECT_EQ(seen_, all);
  EXPECT_EQ(handled(), 100U);
  for (const message::Loopback::Host* host : {client_, server_}) {
    EXPECT_EQ(host->endpoint.counters().dropped(message::MessageDrop::not_authentic), 0U);
    EXPECT_GT(dropped(*host), 0U);
  }
}

TEST_F(Protected, ARestartedPeerIsFoundOutSoon) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(100, 1), answer).status, message::MessageStatus::ok);
  server_protection_->stop(0);
  net_->restart(*server_, config(&kKey, server_protection_));
  const Nanos before = net_->now;
  EXPECT_EQ(ask(session, message::pattern(100, 2), answer).status, message::MessageStatus::peer_lost);
  EXPECT_EQ(client_->events.back().reason, message::LossReason::restarted);
  EXPECT_LT(net_->now.value - before.value, message::EndpointConfig{}.peer_timeout.value / 7);
  client_->events.clear();
  ASSERT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  EXPECT_EQ(ask(session, message::pattern(100, 3), answer).status, message::MessageStatus::ok);
}

/// The answer to a ping is such a packet, too: without a limit pings follow each other as long as there are sessions.
TEST_F(Protected, AResetForgedForEachPacketOfBothEndsCostsAPingASecond) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  net_->tap = [&](const message::Loopback::Host& from, Bytes8& bytes) {
    packet::MessageHeader header;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    if (packet::parse(bytes.data(), length, header) != packet::MessageParse::ok) return false;
    Bytes8 reset(packet::MessageReset::kLength);
    packet::emit(packet::MessageReset{header.session, header.cookie}, reset.data());
    const bool of_client = &from == client_;
    net_->inject(of_client ? *client_ : *server_, of_client ? server_->address : client_->address, reset);
    return false;
  };
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(100, 1), answer).status, message::MessageStatus::ok);
  const std::uint64_t before = client_->packets + server_->packets;
  net_->run_for(Nanos{10'000'000'000});
  EXPECT_LE(client_->packets + server_->packets - before, 2U * 11 * 2) << "pings of both ends, and answers";
  EXPECT_EQ(ask(session, message::pattern(100, 2), answer).status, message::MessageStatus::ok);
}

TEST_F(Protected, AHelloThatIsRepeatedEndsNothing) {
  begin(&kKey, &kKey);
  Bytes8 hello;
  net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
    if (packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::hello) hello = bytes;
    return false;
  };
  const message::SessionId session = net_->connect(*client_, *server_).first;
  const Bytes8 first = hello;
  ASSERT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{1'000'000});
  ASSERT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(100, 1), answer).status, message::MessageStatus::ok);
  server_->events.clear();
  for (const Bytes8& old : {first, hello}) {
    net_->inject(*server_, client_->address, old);
    net_->run_for(Nanos{1'000'000});
    EXPECT_EQ(ask(session, message::pattern(100, 2), answer).status, message::MessageStatus::ok);
  }
  net_->run_for(Nanos{2'000'000'000});
  EXPECT_TRUE(server_->events.empty());
  EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions - 1);
}

TEST_F(Protected, AMillionForgedPacketsWithTheCookieDoNothing) {
  begin(&kKey, &kKey);
  const auto [session, there] = net_->connect(*client_, *server_);
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(100, 1), answer).status, message::MessageStatus::ok);
  net_->run_for(Nanos{1'000'000});
  const auto packet = std::ranges::find(recorded_, true, &Packet::from_client);
  packet::MessageHeader known;
  ASSERT_EQ(packet::parse(packet->bytes.data(), static_cast<std::uint32_t>(packet->bytes.size()), known),
            packet::MessageParse::ok);
  const message::EndpointFacts before = server_->endpoint.facts();
  const std::uint64_t handled_before = handled();
  constexpr std::uint8_t kSends[] = {packet::kMessageHasFragment | packet::kMessagePrompt, packet::kMessageHasAck,
                                     packet::kMessageClose, packet::kMessagePing};
  std::uint8_t bytes[message::kMaxHeadBytes];
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    packet::MessageHeader header;
    header.flags = kSends[i % 4] | packet::kMessageProtected;
    header.session = known.session;
    header.cookie = known.cookie;
    header.packet_number = 100 + i % 500;
    header.payload_length = header.has(packet::kMessageHasFragment) ? 32 : 0;
    packet::emit(header, bytes);
    const std::uint32_t length = header.length() + header.payload_length + packet::kMessageTagLength;
    for (std::uint32_t b = packet::MessageHeader::kLength; b < length; ++b)
      bytes[b] = static_cast<std::uint8_t>(mix64(i + b));
    message::Datagram datagram;
    datagram.head = bytes;
    datagram.head_length = length;
    datagram.from = client_->address;
    server_->endpoint.receive({&datagram, 1}, net_->now);
  }
  EXPECT_EQ(server_->endpoint.counters().dropped(message::MessageDrop::not_authentic), 1'000'000U);
  EXPECT_EQ(server_->endpoint.facts(), before);
  EXPECT_EQ(handled(), handled_before);
  EXPECT_EQ(ask(session, message::pattern(100, 2), answer).status, message::MessageStatus::ok);
  EXPECT_TRUE(server_->endpoint.facts(there).established);
}

TEST_F(Protected, AForgedResetEndsNothing) {
  begin(&kKey, &kKey);
  const auto [session, there] = net_->connect(*client_, *server_);
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(5000, 1), answer).status, message::MessageStatus::ok);
  // By one who reads the path: with the cookie, and the session of either end as the other knows it.
  for (int i = 0; i < 2000; ++i) {
    for (const bool to_client : {true, false}) {
      const auto packet = std::ranges::find(recorded_, to_client, &Packet::from_client);
      packet::MessageHeader header;
      ASSERT_EQ(packet::parse(packet->bytes.data(), static_cast<std::uint32_t>(packet->bytes.size()), header),
                packet::MessageParse::ok);
      Bytes8 reset(packet::MessageReset::kLength);
      packet::emit(packet::MessageReset{header.session, header.cookie}, reset.data());
      net_->inject(to_client ? *client_ : *server_, (to_client ? server_ : client_)->address, reset);
    }
    net_->run_for(Nanos{1'000'000});
    if (i % 100 == 0) {
      EXPECT_EQ(ask(session, message::pattern(5000, 1), answer).status, message::MessageStatus::ok);
    }
  }
  EXPECT_TRUE(client_->endpoint.facts(session).established);
  EXPECT_TRUE(server_->endpoint.facts(there).established);
}

TEST_F(Protected, NothingIsWrittenWhereThereIsTooLittleRoom) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  const Bytes8 question = message::pattern(5000, 1);
  const message::ConstBuffer bytes{question.data(), static_cast<std::uint32_t>(question.size())};
  ASSERT_EQ(client_->endpoint.send(session, bytes, {}, net_->now).status, message::CallStatus::ok);
  Bytes8 room(message::EndpointConfig{}.datagram_bytes, 0x77);
  message::Outgoing out;
  out.head = room.data();
  out.head_capacity = message::kMinHeadCapacity;  // enough for headers, not for what is encrypted behind them
  EXPECT_EQ(client_->endpoint.transmit({&out, 1}, net_->now), 0U);
  EXPECT_EQ(room, Bytes8(room.size(), 0x77));
  EXPECT_GE(client_->endpoint.counters().heads_too_small.get(), 1U);
  out.head_capacity = message::EndpointConfig{}.datagram_bytes;
  EXPECT_EQ(client_->endpoint.transmit({&out, 1}, net_->now), 1U);
}

TEST_F(Protected, NoTermOfTheHelloMayChangeOnTheWay) {
  for (std::uint32_t byte = 4; byte < packet::MessageHello::kProven; ++byte) {
    begin(&kKey, &kKey);
    // In each hello, so that the challenge's token is for what it has become.
    net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
      if (packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::hello) bytes[byte] ^= 2;
      return false;
    };
    static_cast<void>(client_->endpoint.connect(server_->address, {.ordered = true}, net_->now));
    EXPECT_TRUE(net_->run([this] { return !client_->events.empty(); }));
    EXPECT_EQ(client_->events.front().kind, message::EventKind::lost) << "byte " << byte;
    EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions) << "nothing is kept of it; byte " << byte;
    net_.reset();
  }
}

TEST_F(Protected, AnAcceptThatWasChangedIsNotBelievedAndTheTrueOneIs) {
  for (std::uint32_t byte = 0; byte < packet::MessageAccept::kProtectedLength; ++byte) {
    begin(&kKey, &kKey);
    bool changed = false;
    net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
      const bool accept = packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::accept;
      if (accept && !std::exchange(changed, true)) bytes[byte] ^= 2;
      return false;
    };
    const message::Opened opened = client_->endpoint.connect(server_->address, {}, net_->now);
    const Bytes8 question = message::pattern(100, byte);
    Bytes8 answer;
    EXPECT_EQ(ask(opened.session, question, answer).status, message::MessageStatus::ok) << "byte " << byte;
    EXPECT_EQ(answer, question);
    EXPECT_EQ(dropped(*client_), 1U) << "byte " << byte;
    net_.reset();
  }
}

TEST_F(Protected, AnotherKeyIsRefusedAtOnceAndMakesNoSession) {
  begin(&kKey, &kOtherKey);
  const message::Opened opened = client_->endpoint.connect(server_->address, {}, net_->now);
  Bytes8 answer;
  EXPECT_EQ(ask(opened.session, message::pattern(100, 1), answer).status, message::MessageStatus::peer_lost);
  EXPECT_EQ(answer, Bytes8(100, 0));
  EXPECT_EQ(handled(), 0U);
  EXPECT_EQ(client_->events.back().reason, message::LossReason::not_accepted);
  EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions);
  EXPECT_EQ(server_->endpoint.counters().dropped(message::MessageDrop::unknown_key), 1U);
}

TEST_F(Protected, AKeyOnOneSideOnlyIsRefusedAtOnce) {
  for (const bool at_client : {true, false}) {
    begin(at_client ? &kKey : nullptr, at_client ? nullptr : &kKey);
    if (at_client) server_protection_.reset();
    const message::Opened opened = client_->endpoint.connect(server_->address, {}, net_->now);
    const auto lost = [this] { return !client_->events.empty(); };
    ASSERT_TRUE(net_->run(lost));
    EXPECT_EQ(client_->events.front().kind, message::EventKind::lost);
    EXPECT_EQ(client_->events.front().reason, message::LossReason::not_accepted);
    EXPECT_EQ(client_->events.front().session, opened.session);
    net_.reset();
    client_protection_.reset();
    server_protection_.reset();
  }
}

TEST_F(Protected, RepeatedPacketsDoNothing) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(10'000, 1), answer).status, message::MessageStatus::ok);
  net_->run_for(Nanos{1'000'000});  // what is on its way arrives
  const std::uint64_t before = handled();
  const std::vector<Packet> old = recorded_;
  const std::uint64_t dropped_before = dropped(*client_) + dropped(*server_);
  for (const Packet& packet : old) {
    net_->inject(packet.from_client ? *server_ : *client_, (packet.from_client ? client_ : server_)->address,
                 packet.bytes);
  }
  EXPECT_EQ(dropped(*client_) + dropped(*server_), dropped_before + old.size());
  EXPECT_EQ(handled(), before);

  // Nor in the session's next life, dressed up with its numbers and cookies.
  EXPECT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{10'000'000});
  recorded_.clear();
  EXPECT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  EXPECT_EQ(ask(session, message::pattern(10, 2), answer).status, message::MessageStatus::ok);
  const auto& fresh = *std::ranges::find(recorded_, true, &Packet::from_client);
  const std::uint64_t unauthentic = server_->endpoint.counters().dropped(message::MessageDrop::not_authentic);
  std::uint64_t tried = 0;
  const std::uint64_t after = handled();
  for (const Packet& packet : old) {
    if (!packet.from_client || packet::load_be64(packet.bytes.data() + 16) < 10) continue;  // below the window
    Bytes8 dressed = packet.bytes;
    std::copy_n(fresh.bytes.begin() + 4, 12, dressed.begin() + 4);
    net_->inject(*server_, client_->address, dressed);
    ++tried;
  }
  EXPECT_EQ(handled(), after);
  EXPECT_EQ(server_->endpoint.counters().dropped(message::MessageDrop::not_authentic), unauthentic + tried);
}

TEST_F(Protected, ReflectedPacketsDoNothing) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(20'000, 1), answer).status, message::MessageStatus::ok);
  const auto& to_client = *std::ranges::find(recorded_, false, &Packet::from_client);
  const std::uint64_t before = dropped(*client_);
  std::uint64_t tried = 0;
  for (const Packet& packet : std::vector<Packet>(recorded_)) {
    if (!packet.from_client) continue;
    Bytes8 reflected = packet.bytes;
    std::copy_n(to_client.bytes.begin() + 4, 12, reflected.begin() + 4);
    packet::store_be64(reflected.data() + 16,
                       packet::load_be64(reflected.data() + 16) + 500);  // a number that is not taken
    net_->inject(*client_, server_->address, reflected);
    ++tried;
  }
  EXPECT_EQ(dropped(*client_), before + tried);
  EXPECT_GT(client_->endpoint.counters().dropped(message::MessageDrop::not_authentic), 0U);
  EXPECT_EQ(client_->endpoint.counters().handled.get(), 0U);
}

TEST_F(Protected, NoByteOfAPacketMayChange) {
  begin(&kKey, &kKey);
  const message::SessionId session = net_->connect(*client_, *server_).first;
  // The request is held back on its way, and comes changed in each of its bytes before it comes as it was.
  Bytes8 held;
  net_->tap = [&](const message::Loopback::Host& from, Bytes8& bytes) {
    if (&from != client_ || !held.empty() || bytes.size() < 100) return false;
    held = bytes;
    return true;
  };
  const Bytes8 question = message::pattern(200, 1);
  Bytes8 answer(200);
  const message::ConstBuffer out{question.data(), 200};
  EXPECT_EQ(client_->endpoint.request(session, out, {answer.data(), 200}, {}, net_->now).status,
            message::CallStatus::ok);
  net_->settle();
  ASSERT_FALSE(held.empty());
  const std::uint64_t before = dropped(*server_);
  for (std::size_t i = 0; i < held.size(); ++i) {
    Bytes8 changed = held;
    changed[i] ^= 1;
    net_->inject(*server_, client_->address, changed);
  }
  EXPECT_EQ(dropped(*server_), before + held.size());
  EXPECT_GT(server_->endpoint.counters().dropped(message::MessageDrop::not_authentic),
            held.size() - packet::MessageHeader::kLength);
  EXPECT_EQ(handled(), 0U);
  EXPECT_TRUE(net_->run([this] { return !client_->events.empty(); }));
  EXPECT_EQ(client_->events.front().status, message::MessageStatus::ok);
  EXPECT_EQ(answer, question);
  EXPECT_EQ(seen_, question);
}

}  // namespace
}  // namespace warpline::protection
