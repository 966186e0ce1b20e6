// SPDX-License-Identifier: Apache-2.0
// What the exchange of a handshake is good for, and what it costs whom.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/protection/aes_gcm.h"
#include "warpline/protection/protected_endpoints_testing.h"
#include "warpline/protection/session_keys.h"

namespace warpline::protection {
namespace {

/// Passes on, and counts exchanges.
class CountedProtection final : public message::PacketProtection {
 public:
  explicit CountedProtection(std::unique_ptr<message::PacketProtection> real) : real_(std::move(real)) {}

  bool prove_hello(message::KeyId key, std::span<const std::uint8_t> hello, message::HandshakeProof& proof) override {
    ++looked_at;
    return real_->prove_hello(key, hello, proof);
  }
  bool offer(std::uint32_t slot) override { return real_->offer(slot); }
  bool answer(std::uint32_t slot, message::KeyId key) override {
    ++exchanges;
    return real_->answer(slot, key);
  }
  [[nodiscard]] message::KeyId key(std::uint32_t slot) const override { return real_->key(slot); }
  [[nodiscard]] message::KeyShare share(std::uint32_t slot) const override { return real_->share(slot); }
  bool prove(std::uint32_t slot, std::span<const std::uint8_t> handshake, message::HandshakeProof& proof) override {
    return real_->prove(slot, handshake, proof);
  }
  bool start(std::uint32_t slot, const message::KeyShare& peer, const message::HandshakeTranscript& handshake,
             bool client) override {
    return real_->start(slot, peer, handshake, client);
  }
  void stop(std::uint32_t slot) override { real_->stop(slot); }
  void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) override {
    real_->seal(slot, packet_number, header, text, tag);
  }
  bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) override {
    return real_->open(slot, packet_number, header, text, tag);
  }

  std::uint64_t looked_at = 0;
  std::uint64_t exchanges = 0;

 private:
  std::unique_ptr<message::PacketProtection> real_;
};

class ForwardSecrecy : public Protected {
 protected:
  /// All that is said from here on in handshakes, both ways.
  void record_handshakes() {
    net_->tap = [this](const message::Loopback::Host& from, Bytes8& bytes) {
      if (is_of_session(bytes)) {
        recorded_.push_back({&from == client_, bytes});
      } else {
        handshake_.push_back({&from == client_, bytes});
      }
      return false;
    };
  }

  std::vector<Packet> handshake_;
};

/// Opens a packet of a client as docs/message_format.md has it, under these secrets.
bool opens_under(const SessionSecrets& secrets, const Bytes8& bytes) {
  packet::MessageHeader header;
  EXPECT_EQ(packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header), packet::MessageParse::ok);
  const EvpCipher ecb(EVP_CIPHER_fetch(nullptr, "AES-128-ECB", nullptr));
  const EvpCipher gcm(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr));
  KeySchedule schedule(ecb.get());
  AesGcm cipher(gcm.get(), AesGcm::Direction::open);
  AesKey key;
  EXPECT_TRUE(schedule.derive(secrets.from_client.secret, header.packet_number >> kPacketsAKeyLog2, key));
  EXPECT_TRUE(cipher.set_key(key));
  Bytes8 text(bytes.begin() + header.length(), bytes.end() - packet::kMessageTagLength);
  GcmTag tag;
  std::copy(bytes.end() - packet::kMessageTagLength, bytes.end(), tag.begin());
  return cipher.open(packet_nonce(secrets.from_client.mask, header.packet_number),
                     std::span(bytes).first(header.length()), text, tag);
}

TEST_F(ForwardSecrecy, WhoLearnsTheKeyLaterCannotReadWhatWasRecorded) {
  begin(&kKey, &kKey);
  record_handshakes();
  const message::SessionId session = net_->connect(*client_, *server_).first;
  Bytes8 answer;
  EXPECT_EQ(ask(session, message::pattern(200, 1), answer).status, message::MessageStatus::ok);
  // All that was on the way: the second hello and the accept make the transcript, with its token and time left out.
  ASSERT_EQ(handshake_.size(), 4U);
  packet::MessageHello hello;
  packet::MessageAccept accept;
  Bytes8 first = handshake_[2].bytes;
  ASSERT_EQ(packet::parse(first.data(), packet::MessageHello::kProtectedLength, hello), packet::MessageParse::ok);
  ASSERT_EQ(packet::parse(handshake_[3].bytes.data(), packet::MessageAccept::kProtectedLength, accept),
            packet::MessageParse::ok);
  std::fill(first.begin() + 16, first.begin() + 28, std::uint8_t{0});
  message::HandshakeTranscript transcript;
  std::copy_n(first.begin(), packet::MessageHello::kProven, transcript.begin());
  std::copy_n(handshake_[3].bytes.begin(), packet::MessageAccept::kProven,
              transcript.begin() + packet::MessageHello::kProven);
  message::HandshakeProof proof;
  ASSERT_TRUE(server_protection_->prove_hello(hello.key, transcript, proof));
  ASSERT_EQ(proof, accept.proof) << "it is the transcript";

  const Bytes8& packet = std::ranges::find(recorded_, true, &Packet::from_client)->bytes;
  const EvpKdf hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  for (const SharedSecret& guess : {SharedSecret{}, SharedSecret{hello.share}, SharedSecret{accept.share}}) {
    SessionSecrets secrets;
    ASSERT_TRUE(derive_session(hkdf.get(), kKey, guess, transcript, secrets));
    EXPECT_FALSE(opens_under(secrets, packet));
  }
  // Nor with pairs of his own, whatever he makes of the shares.
  for (const message::KeyShare& peer : {hello.share, accept.share}) {
    const auto late = *make_protection(kKey, 1);
    ASSERT_TRUE(late->answer(0, hello.key));
    ASSERT_TRUE(late->start(0, peer, transcript, false));
    packet::MessageHeader header;
    ASSERT_EQ(packet::parse(packet.data(), static_cast<std::uint32_t>(packet.size()), header),
              packet::MessageParse::ok);
    Bytes8 text(packet.begin() + header.length(), packet.end() - packet::kMessageTagLength);
    GcmTag tag;
    std::copy(packet.end() - packet::kMessageTagLength, packet.end(), tag.begin());
    EXPECT_FALSE(late->open(0, header.packet_number, std::span(packet).first(header.length()), text, tag));
  }
}

TEST_F(ForwardSecrecy, TheSecretsAreWhatTheDocumentSays) {
  // A server whose half is known makes the same secrets of key, exchange and transcript as the endpoint's protection.
  const auto client = *make_protection(kKey, 1);
  const auto server = *make_protection(kKey, 1);
  ASSERT_TRUE(client->offer(0));
  KeyExchange exchange;
  message::KeyShare share;
  ASSERT_TRUE(exchange.draw(share));
  SharedSecret shared;
  ASSERT_TRUE(exchange.agree(client->share(0), shared));
  const message::HandshakeTranscript transcript{1, 2, 3};
  ASSERT_TRUE(client->start(0, share, transcript, true));
  const EvpKdf hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  SessionSecrets secrets;
  ASSERT_TRUE(derive_session(hkdf.get(), kKey, shared, transcript, secrets));
  packet::MessageHeader header;
  header.flags = packet::kMessageHasFragment | packet::kMessageProtected;
  header.packet_number = 77;
  header.payload_length = 40;
  Bytes8 packet(header.length() + header.payload_length + packet::kMessageTagLength);
  packet::emit(header, packet.data());
  client->seal(0, header.packet_number, std::span(packet).first(header.length()),
               std::span(packet).subspan(header.length(), header.payload_length),
               std::span(packet).last<packet::kMessageTagLength>());
  EXPECT_TRUE(opens_under(secrets, packet));
}

TEST_F(ForwardSecrecy, EachHandshakeHasItsOwnSharesAndAllItsHellosTheSame) {
  begin(&kKey, &kKey);
  record_handshakes();
  const message::SessionId session = net_->connect(*client_, *server_).first;
  ASSERT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{1'000'000});
  ASSERT_EQ(client_->endpoint.reconnect(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{1'000'000});
  std::vector<message::KeyShare> of_client;
  std::vector<message::KeyShare> of_server;
  for (const Packet& each : handshake_) {
    packet::MessageHello hello;
    packet::MessageAccept accept;
    const auto length = static_cast<std::uint32_t>(each.bytes.size());
    const packet::MessagePacketType type = packet::MessagePrefix::type(each.bytes.data());
    if (type == packet::MessagePacketType::hello &&
        packet::parse(each.bytes.data(), length, hello) == packet::MessageParse::ok) {
      of_client.push_back(hello.share);
    }
    if (type == packet::MessagePacketType::accept &&
        packet::parse(each.bytes.data(), length, accept) == packet::MessageParse::ok) {
      of_server.push_back(accept.share);
    }
  }
  ASSERT_EQ(of_client.size(), 4U);
  ASSERT_EQ(of_server.size(), 2U);
  EXPECT_EQ(of_client[0], of_client[1]);
  EXPECT_EQ(of_client[2], of_client[3]);
  EXPECT_NE(of_client[0], of_client[2]);
  EXPECT_NE(of_server[0], of_server[1]);
}

TEST_F(ForwardSecrecy, NoAnswerIsLongerThanItsQuestion) {
  begin(&kKey, &kKey);
  record_handshakes();
  (void)net_->connect(*client_, *server_);
  ASSERT_EQ(handshake_.size(), 4U);
  for (const std::size_t i : {0, 2}) {
    EXPECT_TRUE(handshake_[i].from_client);
    EXPECT_FALSE(handshake_[i + 1].from_client);
    EXPECT_LE(handshake_[i + 1].bytes.size(), handshake_[i].bytes.size());
  }
}

TEST_F(ForwardSecrecy, NothingIsExchangedBeforeTokenAndProof) {
  auto counted = std::make_unique<CountedProtection>(*make_protection(kKey, kSessions));
  const CountedProtection& counts = *counted;
  server_protection_ = std::move(counted);
  message::EndpointConfig server = config();
  server.protection = server_protection_.get();
  begin(config(&kKey, client_protection_), server, {});
  record_handshakes();
  const message::SessionId session = net_->connect(*client_, *server_).first;
  EXPECT_EQ(counts.looked_at, 1U);
  EXPECT_EQ(counts.exchanges, 1U);
  const Bytes8 first = handshake_[0].bytes;
  const Bytes8 second = handshake_[2].bytes;
  for (int i = 0; i < 100; ++i) {  // what was said before
    net_->inject(*server_, client_->address, first);
    net_->inject(*server_, client_->address, second);
  }
  EXPECT_EQ(counts.looked_at, 1U);
  ASSERT_EQ(client_->endpoint.close(session, net_->now), message::CallStatus::ok);
  net_->run_for(Nanos{1'000'000});
  for (std::size_t byte = 16; byte < 24; ++byte) {  // a token that is not the one
    Bytes8 changed = second;
    changed[byte] ^= 1;
    net_->inject(*server_, client_->address, changed);
  }
  EXPECT_EQ(counts.looked_at, 1U);
  for (std::size_t byte = packet::MessageHello::kProven - 40; byte < second.size(); ++byte) {  // key, share and proof
    Bytes8 changed = second;
    changed[byte] ^= 1;
    net_->inject(*server_, client_->address, changed);
  }
  EXPECT_EQ(counts.looked_at, 1U + 8 + 32 + 16);
  EXPECT_EQ(counts.exchanges, 1U);
}

TEST_F(ForwardSecrecy, AShareThatMakesNoSecretOpensNothing) {
  // A peer that has the key may draw no pair: 1 makes the same secret of any.
  for (const bool to_server : {true, false}) {
    begin(&kKey, &kKey);
    const auto prover = *make_protection(kKey, 1);
    ASSERT_TRUE(prover->offer(0));
    Bytes8 hello;
    net_->tap = [&](const message::Loopback::Host&, Bytes8& bytes) {
      const packet::MessagePacketType type = packet::MessagePrefix::type(bytes.data());
      if (to_server && type == packet::MessagePacketType::hello) {
        std::fill_n(bytes.begin() + 48, 32, std::uint8_t{0});
        bytes[48] = 1;
        message::HandshakeProof proof;
        EXPECT_TRUE(prover->prove(0, std::span(bytes).first(packet::MessageHello::kProven), proof));
        std::ranges::copy(proof, bytes.begin() + packet::MessageHello::kProven);
      }
      if (!to_server && type == packet::MessagePacketType::hello) hello = bytes;
      if (!to_server && type == packet::MessagePacketType::accept) {
        std::fill_n(bytes.begin() + 48, 32, std::uint8_t{0});
        bytes[48] = 1;
        Bytes8 transcript(hello.begin(), hello.begin() + packet::MessageHello::kProven);
        std::fill(transcript.begin() + 16, transcript.begin() + 28, std::uint8_t{0});
        transcript.insert(transcript.end(), bytes.begin(), bytes.begin() + packet::MessageAccept::kProven);
        message::HandshakeProof proof;
        EXPECT_TRUE(prover->prove(0, transcript, proof));
        std::ranges::copy(proof, bytes.begin() + packet::MessageAccept::kProven);
      }
      return false;
    };
    (void)client_->endpoint.connect(server_->address, {}, net_->now);
    ASSERT_TRUE(net_->run([this] { return !client_->events.empty(); }));
    EXPECT_EQ(client_->events.front().kind, message::EventKind::lost);
    const message::Loopback::Host& refuses = to_server ? *server_ : *client_;
    EXPECT_GE(refuses.endpoint.counters().dropped(message::MessageDrop::not_authentic), 1U);
    if (to_server) {
      EXPECT_EQ(server_->endpoint.facts().free_sessions, kSessions) << "nothing is kept of it";
    }
    net_.reset();
  }
}

}  // namespace
}  // namespace warpline::protection
