// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/aes_gcm.h"

#include <algorithm>

namespace warpline::protection {
namespace {

constexpr int length_of(std::span<const std::uint8_t> bytes) { return static_cast<int>(bytes.size()); }

}  // namespace

bool AesGcm::set_key(const AesKey& key) {
  if (context_ == nullptr) context_.reset(EVP_CIPHER_CTX_new());
  const bool fresh = context_ != nullptr && EVP_CIPHER_CTX_get0_cipher(context_.get()) == nullptr;
  const int sealing = direction_ == Direction::seal ? 1 : 0;
  if (context_ != nullptr &&
      EVP_CipherInit_ex2(context_.get(), fresh ? cipher_ : nullptr, key.data(), nullptr, sealing, nullptr) == 1) {
    return true;
  }
  clear();
  return false;
}

bool AesGcm::run(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text) {
  EVP_CIPHER_CTX* const context = context_.get();
  int written = 0;
  // EVP takes a null output for a header, and an empty text's data may be null.
  return context != nullptr && EVP_CipherInit_ex2(context, nullptr, nullptr, nonce.data(), -1, nullptr) == 1 &&
         (header.empty() || EVP_CipherUpdate(context, nullptr, &written, header.data(), length_of(header)) == 1) &&
         (text.empty() || EVP_CipherUpdate(context, text.data(), &written, text.data(), length_of(text)) == 1);
}

bool AesGcm::seal(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text,
                  std::span<std::uint8_t, 16> tag) {
  std::array<std::uint8_t, 16> none;
  int written = 0;
  if (run(nonce, header, text) && EVP_CipherFinal_ex(context_.get(), none.data(), &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) == 1) {
    return true;
  }
  std::ranges::fill(text, std::uint8_t{0});
  std::ranges::fill(tag, std::uint8_t{0});
  return false;
}

bool AesGcm::open(const GcmNonce& nonce, std::span<const std::uint8_t> header, std::span<std::uint8_t> text,
                  std::span<const std::uint8_t, 16> tag) {
  std::array<std::uint8_t, 16> expected;
  std::ranges::copy(tag, expected.begin());
  int written = 0;
  return run(nonce, header, text) &&
         EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, 16, expected.data()) == 1 &&
         EVP_CipherFinal_ex(context_.get(), expected.data(), &written) == 1;
}

}  // namespace warpline::protection
