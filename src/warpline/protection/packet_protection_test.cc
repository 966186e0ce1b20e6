// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/packet_protection.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <utility>

#include "warpline/message/endpoint.h"
#include "warpline/protection/protection_testing.h"
#include "warpline/protection/session_keys.h"

namespace warpline::protection {
namespace {

// OpenSSL's own allocations, counted. One thread.
std::size_t allocations = 0;
std::size_t live_bytes = 0;

void* counted_malloc(std::size_t bytes, const char* /*file*/, int /*line*/) {
  ++allocations;
  void* const memory = std::malloc(bytes);
  live_bytes += malloc_usable_size(memory);
  return memory;
}
void* counted_realloc(void* memory, std::size_t bytes, const char* /*file*/, int /*line*/) {
  ++allocations;
  live_bytes -= malloc_usable_size(memory);
  void* const moved = std::realloc(memory, bytes);
  live_bytes += malloc_usable_size(moved);
  return moved;
}
void counted_free(void* memory, const char* /*file*/, int /*line*/) {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

/// OpenSSL takes it only before it has allocated anything.
const bool kCounting = CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free) == 1;

constexpr std::uint32_t kSlots = 4;
constexpr message::HandshakeTranscript kSession{11, 22, 33, 44};

AesKey test_key() { return array_of<AesKey>("000102030405060708090a0b0c0d0e0f"); }

struct Sealed {
  std::uint64_t number = 7;
  Octets header = octets("57140200aabbccdd");
  Octets text = octets("00112233445566778899aabbccddeeff0011");
  std::array<std::uint8_t, 16> tag{};
};

std::unique_ptr<message::PacketProtection> protection_of(const AesKey& key) { return *make_protection(key, kSlots); }

void seal(message::PacketProtection& by, std::uint32_t slot, Sealed& packet) {
  by.seal(slot, packet.number, packet.header, packet.text, packet.tag);
}

/// On a copy.
bool opens(message::PacketProtection& by, std::uint32_t slot, Sealed packet) {
  return by.open(slot, packet.number, packet.header, packet.text, packet.tag);
}

message::KeyId id_of_key(const AesKey& key) {
  const GivenKey given{key, {}};
  return (*KeySet::make({&given, 1}))->keys().front().id;
}

/// A session of two ends, each in its slot.
void begin_session(message::PacketProtection& client, std::uint32_t client_slot, message::PacketProtection& server,
                   std::uint32_t server_slot, const message::HandshakeTranscript& session) {
  ASSERT_TRUE(client.offer(client_slot));
  ASSERT_TRUE(server.answer(server_slot, id_of_key(test_key())));
  ASSERT_TRUE(server.start(server_slot, client.share(client_slot), session, false));
  ASSERT_TRUE(client.start(client_slot, server.share(server_slot), session, true));
}

class TwoEnds : public testing::Test {
 protected:
  TwoEnds() { begin_session(*client_, 0, *server_, 1, kSession); }

  std::unique_ptr<message::PacketProtection> client_ = protection_of(test_key());
  std::unique_ptr<message::PacketProtection> server_ = protection_of(test_key());
};

TEST_F(TwoEnds, BothWays) {
  const Sealed plain;
  for (const std::uint64_t number : {0UL, 1UL, 5UL, 2UL, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    for (const bool from_client : {true, false}) {
      message::PacketProtection& sender = from_client ? *client_ : *server_;
      message::PacketProtection& receiver = from_client ? *server_ : *client_;
      Sealed packet = plain;
      packet.number = number;
      seal(sender, from_client ? 0 : 1, packet);
      EXPECT_NE(packet.text, plain.text);
      EXPECT_TRUE(receiver.open(from_client ? 1 : 0, packet.number, packet.header, packet.text, packet.tag));
      EXPECT_EQ(packet.text, plain.text);
    }
  }
}

TEST_F(TwoEnds, EmptyTextsAreAuthenticated) {
  Sealed packet;
  packet.text.clear();
  seal(*client_, 0, packet);
  EXPECT_TRUE(opens(*server_, 1, packet));
  packet.header[3] ^= 1;
  EXPECT_FALSE(opens(*server_, 1, packet));
}

TEST_F(TwoEnds, NoBitMayChange) {
  Sealed packet;
  seal(*client_, 0, packet);
  ASSERT_TRUE(opens(*server_, 1, packet));
  const auto flip_each = [&](auto part) {
    for (std::size_t i = 0; i < (packet.*part).size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        Sealed forged = packet;
        (forged.*part)[i] ^= static_cast<std::uint8_t>(1 << bit);
        EXPECT_FALSE(opens(*server_, 1, forged)) << "byte " << i << " bit " << bit;
      }
    }
  };
  flip_each(&Sealed::header);
  flip_each(&Sealed::text);
  flip_each(&Sealed::tag);
  for (int bit = 0; bit < 64; ++bit) {
    Sealed forged = packet;
    forged.number ^= std::uint64_t{1} << bit;
    EXPECT_FALSE(opens(*server_, 1, forged)) << "number's bit " << bit;
  }
  Sealed shorter = packet;
  shorter.text.pop_back();
  EXPECT_FALSE(opens(*server_, 1, shorter));
  Sealed moved = packet;  // a byte of the header counted as text
  moved.text.insert(moved.text.begin(), moved.header.back());
  moved.header.pop_back();
  EXPECT_FALSE(opens(*server_, 1, moved));
  EXPECT_TRUE(opens(*server_, 1, packet)) << "refused packets leave no trace";
}

TEST_F(TwoEnds, NotItsOwnPackets) {
  Sealed packet;
  seal(*client_, 0, packet);
  EXPECT_FALSE(opens(*client_, 0, packet));
  Sealed back;
  seal(*server_, 1, back);
  EXPECT_FALSE(opens(*server_, 1, back));
}

TEST_F(TwoEnds, NotOfAnotherKey) {
  const auto stranger = protection_of(AesKey{});
  ASSERT_TRUE(stranger->offer(0));
  ASSERT_TRUE(stranger->start(0, server_->share(1), kSession, true));
  Sealed packet;
  seal(*stranger, 0, packet);
  EXPECT_FALSE(opens(*server_, 1, packet));
}

TEST_F(TwoEnds, NotOfAnotherSession) {
  Sealed packet;
  seal(*client_, 0, packet);
  for (std::size_t byte = 0; byte < kSession.size(); ++byte) {
    message::HandshakeTranscript other = kSession;
    ++other[byte];
    begin_session(*client_, 2, *server_, 2, other);
    EXPECT_FALSE(opens(*server_, 2, packet)) << byte;
  }
  // The same slot again: what was recorded before is worth nothing.
  message::HandshakeTranscript next = kSession;
  ++next[1];
  begin_session(*client_, 0, *server_, 1, next);
  EXPECT_FALSE(opens(*server_, 1, packet));
  Sealed fresh;
  seal(*client_, 0, fresh);
  EXPECT_TRUE(opens(*server_, 1, fresh));
}

TEST_F(TwoEnds, NothingOutsideOfASession) {
  Sealed packet;
  seal(*client_, 0, packet);
  server_->stop(1);
  EXPECT_FALSE(opens(*server_, 1, packet));
  EXPECT_FALSE(opens(*server_, 3, packet));
  Sealed lost;
  seal(*server_, 1, lost);
  EXPECT_EQ(lost.text, Octets(lost.text.size(), 0));
  EXPECT_FALSE(opens(*client_, 0, lost));
}

TEST_F(TwoEnds, KeysChangeAndPacketsMayCrossTheChange) {
  constexpr std::uint64_t kChange = std::uint64_t{1} << kPacketsAKeyLog2;
  std::vector<Sealed> packets;
  for (std::uint64_t number = kChange - 3; number < kChange + 3; ++number) {
    Sealed packet;
    packet.number = number;
    seal(*client_, 0, packet);
    packets.push_back(packet);
  }
  for (const std::size_t i : {0, 3, 1, 5, 2, 4}) EXPECT_TRUE(opens(*server_, 1, packets[i])) << i;
}

TEST_F(TwoEnds, NoAllocationOnTheWayOfAPacket) {
  ASSERT_TRUE(kCounting);
  Sealed packet;
  const std::size_t before = allocations;
  for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{1} << kPacketsAKeyLog2, std::uint64_t{2}}) {
    packet.number = number;
    seal(*client_, 0, packet);
    EXPECT_TRUE(server_->open(1, packet.number, packet.header, packet.text, packet.tag));
    packet.tag[0] ^= 1;
    EXPECT_FALSE(server_->open(1, packet.number, packet.header, packet.text, packet.tag));
  }
  EXPECT_EQ(allocations, before);
}

TEST_F(TwoEnds, ALiveSessionIsSmall) {
  ASSERT_TRUE(kCounting);
  message::HandshakeTranscript another = kSession;
  ++another[1];
  const std::size_t before = live_bytes;
  ASSERT_TRUE(client_->offer(2));
  ASSERT_TRUE(client_->start(2, server_->share(1), another, true));
  EXPECT_LE(live_bytes - before, 2400U) << "of the exchange nothing is left";
  EXPECT_GT(live_bytes, before);
  client_->stop(2);
  EXPECT_EQ(live_bytes, before);
}

TEST(PacketProtection, FileThatIsNotThere) {
  const auto protection = load_protection("/nonexistent/key", kSlots);
  ASSERT_FALSE(protection.ok());
  EXPECT_EQ(protection.error().kind, ErrorKind::environment);
}

message::EndpointConfig config_with(message::PacketProtection& protection, std::uint32_t sessions) {
  message::EndpointConfig config;
  config.max_sessions = sessions;
  config.protection = &protection;
  return config;
}

TEST(PacketProtection, IsOneEndpointsAtATime) {
  // Two endpoints would use one slot's key with the same packet numbers: NIST SP 800-38D, section 8, forbids it.
  auto protection = protection_of(test_key());
  const message::EndpointConfig config = config_with(*protection, kSlots);
  {
    auto first = message::Endpoint::create(config, {});
    ASSERT_TRUE(first.ok());
    const auto second = message::Endpoint::create(config, {});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().kind, ErrorKind::usage);
    const message::Endpoint moved = std::move(first).value();
    EXPECT_FALSE(message::Endpoint::create(config, {}).ok()) << "it moved with the endpoint";
  }
  auto later = message::Endpoint::create(config, {});
  ASSERT_TRUE(later.ok());
  protection.reset();  // before the endpoint, which does not touch it any more
}

TEST(PacketProtection, IsNotForMoreSessionsThanItHasKeysFor) {
  const auto protection = protection_of(test_key());
  const auto more = message::Endpoint::create(config_with(*protection, kSlots + 1), {});
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().kind, ErrorKind::usage);
  EXPECT_TRUE(message::Endpoint::create(config_with(*protection, kSlots - 1), {}).ok());
  EXPECT_TRUE(message::Endpoint::create(config_with(*protection, kSlots), {}).ok()) << "those before are gone";
}

}  // namespace
}  // namespace warpline::protection
