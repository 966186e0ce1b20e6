// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_exchange.h"

#include <utility>

namespace warpline::protection {

bool KeyExchange::draw(message::KeyShare& share) {
  pair_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  std::size_t length = share.size();
  if (pair_ != nullptr && EVP_PKEY_get_raw_public_key(pair_.get(), share.data(), &length) == 1) return true;
  pair_.reset();
  return false;
}

bool KeyExchange::agree(const message::KeyShare& peer, SharedSecret& secret) {
  const EvpKey own = std::exchange(pair_, nullptr);
  if (own == nullptr) return false;
  const EvpKey other(EVP_PKEY_new_raw_public_key_ex(nullptr, "X25519", nullptr, peer.data(), peer.size()));
  const EvpKeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, own.get(), nullptr));
  std::size_t length = secret.size();
  return other != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
         EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1 &&
         EVP_PKEY_derive(context.get(), secret.data(), &length) == 1 && length == secret.size();
}

}  // namespace warpline::protection
