// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "warpline/protection/openssl_owners.h"

namespace warpline::protection {

using AesKey = std::array<std::uint8_t, 16>;
using GcmNonce = std::array<std::uint8_t, 12>;
using GcmTag = std::array<std::uint8_t, 16>;

/// AES-128-GCM (NIST SP 800-38D) of one direction under one key at a time. Only the first set_key() of an object
/// allocates.
class AesGcm {
 public:
  enum class Direction : std::uint8_t { seal, open };

  AesGcm(const EVP_CIPHER* cipher, Direction direction) : cipher_(cipher), direction_(direction) {}

  /// False if OpenSSL is out of memory; then no key is set.
  [[nodiscard]] bool set_key(const AesKey& key);
  /// Wipes the key and gives its memory back.
  void clear() { context_.reset(); }
  [[nodiscard]] bool has_key() const { return context_ != nullptr; }

  /// In place. False, with nothing of `text` left, if there is no key.
  [[nodiscard]] bool seal(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text,
                          std::span<std::uint8_t, 16> tag);
  /// In place. False, with `text` undefined, unless all was sealed with this key and nonce.
  [[nodiscard]] bool open(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text,
                          std::span<const std::uint8_t, 16> tag);

 private:
  /// All but the tag.
  [[nodiscard]] bool run(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text);

  const EVP_CIPHER* cipher_;
  EvpCipherContext context_;
  Direction direction_;
};

}  // namespace warpline::protection
