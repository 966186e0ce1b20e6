// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/session_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "warpline/protection/protection_testing.h"

namespace warpline::protection {
namespace {

const EvpKdf& hkdf() {
  static const EvpKdf kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  return kdf;
}

TEST(SessionKeys, HkdfAsInRfc5869) {
  Octets output(42);
  ASSERT_TRUE(hkdf_sha256(hkdf().get(), Octets(22, 0x0b), octets("000102030405060708090a0b0c"),
                          octets("f0f1f2f3f4f5f6f7f8f9"), output));
  EXPECT_EQ(output, octets("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
}

TEST(SessionKeys, NonceAsInRfc9001) {
  const auto mask = array_of<GcmNonce>("e0459b3474bdd0e44a41c144");
  EXPECT_EQ(packet_nonce(mask, 654360564), array_of<GcmNonce>("e0459b3474bdd0e46d417eb0"));
  EXPECT_EQ(packet_nonce(GcmNonce{}, 0x0102030405060708), array_of<GcmNonce>("000000000102030405060708"));
}

TEST(SessionKeys, ScheduleIsTheBlockCipherOfTheEpoch) {
  const EvpCipher ecb(EVP_CIPHER_fetch(nullptr, "AES-128-ECB", nullptr));
  KeySchedule schedule(ecb.get());
  AesKey key;
  ASSERT_TRUE(schedule.derive(AesKey{}, 0, key));
  EXPECT_EQ(key, array_of<AesKey>("66e94bd4ef8a2c3b884cfa59ca342b2e"));  // NIST's GCM test case 1 has it as H
  ASSERT_TRUE(schedule.derive(AesKey{}, 1, key));
  EXPECT_EQ(key, array_of<AesKey>("58e2fccefa7e3061367f1d57a4e7455a"));  // and this as E(K, Y0)
}

TEST(SessionKeys, EverythingThatIsToldApartChangesAllSecrets) {
  const message::HandshakeTranscript handshake{1, 2, 3};
  const AesKey key = array_of<AesKey>("000102030405060708090a0b0c0d0e0f");
  std::set<AesKey> secrets;
  std::set<GcmNonce> masks;
  std::size_t sessions = 0;
  const auto add = [&](const AesKey& of, const SharedSecret& exchanged, const message::HandshakeTranscript& session) {
    SessionSecrets made;
    ASSERT_TRUE(derive_session(hkdf().get(), of, exchanged, session, made));
    for (const DirectionSecrets& direction : {made.from_client, made.from_server}) {
      secrets.insert(direction.secret);
      masks.insert(direction.mask);
    }
    ++sessions;
  };
  add(key, {}, handshake);
  add(AesKey{}, {}, handshake);
  for (std::size_t byte = 0; byte < sizeof(SharedSecret); ++byte) {
    SharedSecret other{};
    other[byte] ^= 1;
    add(key, other, handshake);
  }
  for (std::size_t byte = 0; byte < handshake.size(); ++byte) {
    message::HandshakeTranscript other = handshake;
    other[byte] ^= 1;
    add(key, {}, other);
  }
  EXPECT_EQ(secrets.size(), 2 * sessions);
  EXPECT_EQ(masks.size(), 2 * sessions);
}

TEST(SessionKeys, ProofIsOfTheKeyAndOfEveryByte) {
  const EvpMac hmac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  Key key{.secret = array_of<AesKey>("000102030405060708090a0b0c0d0e0f"), .name = {}};
  Key other{.name = {}};
  ASSERT_TRUE(derive_key(hkdf().get(), key) && derive_key(hkdf().get(), other));
  HandshakeProver prover(hmac.get());
  const Octets handshake(40, 0x11);
  std::set<message::HandshakeProof> proofs;
  const auto add = [&](const Key& by, const Octets& bytes) {
    message::HandshakeProof proof;
    ASSERT_TRUE(prover.prove(by, bytes, proof));
    proofs.insert(proof);
  };
  add(key, handshake);
  add(key, handshake);
  EXPECT_EQ(proofs.size(), 1U) << "whoever has the key makes the same one";
  add(other, handshake);
  add(key, Octets(41, 0x11));
  for (std::size_t byte = 0; byte < handshake.size(); ++byte) {
    Octets changed = handshake;
    changed[byte] ^= 0x80;
    add(key, changed);
  }
  EXPECT_EQ(proofs.size(), 3 + handshake.size());
}

}  // namespace
}  // namespace warpline::protection
