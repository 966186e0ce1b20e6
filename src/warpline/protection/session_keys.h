// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/message/protection.h"
#include "warpline/protection/aes_gcm.h"
#include "warpline/protection/key_exchange.h"
#include "warpline/protection/key_set.h"
#include "warpline/protection/openssl_owners.h"

namespace warpline::protection {

/// HKDF with SHA-256 (RFC 5869), extract and expand. False if OpenSSL is out of memory.
[[nodiscard]] bool hkdf_sha256(EVP_KDF* kdf, std::span<const std::uint8_t> key, std::span<const std::uint8_t> salt,
                               std::span<const std::uint8_t> info, std::span<std::uint8_t> output);

/// What one direction of a session is protected with: keys are made of `secret`, nonces of `mask`.
struct DirectionSecrets {
  AesKey secret{};
  GcmNonce mask{};
};

struct SessionSecrets {
  DirectionSecrets from_client;
  DirectionSecrets from_server;
};

/// HKDF of the key that both ends were given and of what their exchange made, for the session of this handshake: both
/// hellos, with all terms.
[[nodiscard]] bool derive_session(EVP_KDF* kdf, const AesKey& key, const SharedSecret& exchanged,
                                  const message::HandshakeTranscript& handshake, SessionSecrets& secrets);

/// Makes by HKDF of a key's secret what it is proven with, and its id.
[[nodiscard]] bool derive_key(EVP_KDF* kdf, Key& key);

/// Proves in a handshake that its sender has a key: HMAC-SHA256 (RFC 2104), its first 16 bytes, under Key::proof.
class HandshakeProver {
 public:
  /// `mac` is HMAC.
  explicit HandshakeProver(EVP_MAC* mac) : context_(EVP_MAC_CTX_new(mac)) {}
  /// False if OpenSSL failed.
  [[nodiscard]] bool prove(const Key& key, std::span<const std::uint8_t> handshake, message::HandshakeProof& proof);

 private:
  EvpMacContext context_;
};

/// A direction's key changes after so many packet numbers: AES-GCM stays as good as random for 2^23 packets of a key
/// (RFC 9001, section 6.6).
inline constexpr unsigned kPacketsAKeyLog2 = 22;

/// The packet number in the low bytes, on top of the mask (RFC 9001, section 5.3).
[[nodiscard]] inline GcmNonce packet_nonce(const GcmNonce& mask, std::uint64_t packet_number) {
  GcmNonce nonce = mask;
  for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] ^= static_cast<std::uint8_t>(packet_number >> (8 * i));
  return nonce;
}

/// Makes the keys of a direction, one after the other, of its secret: the block cipher as pseudo-random function, as
/// in RFC 8452, section 4.
class KeySchedule {
 public:
  /// `cipher` is AES-128-ECB.
  explicit KeySchedule(const EVP_CIPHER* cipher);
  /// False if OpenSSL failed. No allocation but in the first call.
  [[nodiscard]] bool derive(const AesKey& secret, std::uint64_t epoch, AesKey& key);

 private:
  const EVP_CIPHER* cipher_;
  EvpCipherContext context_;
};

}  // namespace warpline::protection
