// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <memory>

namespace warpline::protection {

template <auto release>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};

using EvpCipher = std::unique_ptr<EVP_CIPHER, OpensslDeleter<EVP_CIPHER_free>>;
using EvpCipherContext = std::unique_ptr<EVP_CIPHER_CTX, OpensslDeleter<EVP_CIPHER_CTX_free>>;
using EvpKey = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using EvpKeyContext = std::unique_ptr<EVP_PKEY_CTX, OpensslDeleter<EVP_PKEY_CTX_free>>;
using EvpKdf = std::unique_ptr<EVP_KDF, OpensslDeleter<EVP_KDF_free>>;
using EvpMac = std::unique_ptr<EVP_MAC, OpensslDeleter<EVP_MAC_free>>;
using EvpMacContext = std::unique_ptr<EVP_MAC_CTX, OpensslDeleter<EVP_MAC_CTX_free>>;
using EvpKdfContext = std::unique_ptr<EVP_KDF_CTX, OpensslDeleter<EVP_KDF_CTX_free>>;

}  // namespace warpline::protection
