// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/session_keys.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "warpline/packet/byte_order.h"

namespace warpline::protection {
namespace {

// Salt and labels of HKDF.
constexpr std::string_view kProtocol = "warpline message 2";
constexpr std::string_view kSessionLabel = "session";
constexpr std::string_view kProofLabel = "proof";
constexpr std::string_view kIdLabel = "key id";

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

OSSL_PARAM octets(const char* name, std::span<const std::uint8_t> bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

bool hkdf_sha256(EVP_KDF* kdf, std::span<const std::uint8_t> key, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::span<std::uint8_t> output) {
  const EvpKdfContext context(EVP_KDF_CTX_new(kdf));
  if (context == nullptr) return false;
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                   octets(OSSL_KDF_PARAM_KEY, key), octets(OSSL_KDF_PARAM_SALT, salt),
                                   octets(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), output.data(), output.size(), parameters) == 1;
}

bool derive_session(EVP_KDF* kdf, const AesKey& key, const SharedSecret& exchanged,
                    const message::HandshakeTranscript& handshake, SessionSecrets& secrets) {
  std::array<std::uint8_t, sizeof(AesKey) + sizeof(SharedSecret)> both;
  std::ranges::copy(exchanged, std::ranges::copy(key, both.begin()).out);
  std::array<std::uint8_t, kSessionLabel.size() + std::tuple_size_v<message::HandshakeTranscript>> info;
  std::ranges::copy(handshake, std::ranges::copy(kSessionLabel, info.begin()).out);

  std::array<std::uint8_t, 2 * (sizeof(AesKey) + sizeof(GcmNonce))> material;
  const bool made = hkdf_sha256(kdf, both, bytes_of(kProtocol), info, material);
  OPENSSL_cleanse(both.data(), both.size());
  if (!made) return false;
  const std::uint8_t* at = material.data();
  const auto take = [&at](auto& part) {
    std::copy_n(at, part.size(), part.begin());
    at += part.size();
  };
  take(secrets.from_client.secret);
  take(secrets.from_server.secret);
  take(secrets.from_client.mask);
  take(secrets.from_server.mask);
  OPENSSL_cleanse(material.data(), material.size());
  return true;
}

bool derive_key(EVP_KDF* kdf, Key& key) {
  std::array<std::uint8_t, 8> id;
  if (!hkdf_sha256(kdf, key.secret, bytes_of(kProtocol), bytes_of(kProofLabel), key.proof)) return false;
  if (!hkdf_sha256(kdf, key.secret, bytes_of(kProtocol), bytes_of(kIdLabel), id)) return false;
  key.id = std::max<message::KeyId>(packet::load_be64(id.data()), 1);
  return true;
}

bool HandshakeProver::prove(const Key& key, std::span<const std::uint8_t> handshake, message::HandshakeProof& proof) {
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  std::array<std::uint8_t, 32> whole;
  std::size_t length = 0;
  const bool made = context_ != nullptr &&
                    EVP_MAC_init(context_.get(), key.proof.data(), key.proof.size(), parameters) == 1 &&
                    EVP_MAC_update(context_.get(), handshake.data(), handshake.size()) == 1 &&
                    EVP_MAC_final(context_.get(), whole.data(), &length, whole.size()) == 1;
  if (!made || length != whole.size()) return false;
  std::copy_n(whole.begin(), proof.size(), proof.begin());
  return true;
}

KeySchedule::KeySchedule(const EVP_CIPHER* cipher) : cipher_(cipher), context_(EVP_CIPHER_CTX_new()) {}

bool KeySchedule::derive(const AesKey& secret, std::uint64_t epoch, AesKey& key) {
  EVP_CIPHER_CTX* const context = context_.get();
  if (context == nullptr) return false;
  const bool fresh = EVP_CIPHER_CTX_get0_cipher(context) == nullptr;
  std::array<std::uint8_t, 16> block{};
  packet::store_be64(block.data() + 8, epoch);
  int written = 0;
  return EVP_EncryptInit_ex2(context, fresh ? cipher_ : nullptr, secret.data(), nullptr, nullptr) == 1 &&
         EVP_CIPHER_CTX_set_padding(context, 0) == 1 &&
         EVP_EncryptUpdate(context, key.data(), &written, block.data(), static_cast<int>(block.size())) == 1 &&
         written == static_cast<int>(key.size());
}

}  // namespace warpline::protection
