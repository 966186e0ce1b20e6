// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_set.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "warpline/protection/session_keys.h"

namespace warpline::protection {
namespace {

constexpr std::size_t kLongestName = 32;

bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

}  // namespace

bool is_key_name(std::string_view name) {
  const bool like_a_key = name.size() == 2 * sizeof(AesKey) && std::ranges::all_of(name, is_digit);
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_name_character) && !like_a_key;
}

std::string label(const Key& key) { return key.name.empty() ? fmt::format("{:016x}", key.id) : key.name; }

Result<std::shared_ptr<const KeySet>> KeySet::make(std::span<const GivenKey> keys) {
  if (keys.empty()) return usage_error("a set of no keys", "nothing could be protected with it", "give it one");
  const EvpKdf hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::shared_ptr<KeySet> set(new KeySet);
  set->keys_.resize(keys.size());
  std::unordered_set<message::KeyId> ids;
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Key& key = set->keys_[i];
    key.secret = keys[i].secret;
    key.name = keys[i].name;
    if (!derive_key(hkdf.get(), key)) {
      return environment_error("cannot make anything of keys", "this OpenSSL offers no HKDF",
                               "look at `openssl list -kdf-algorithms` and the machine's openssl.cnf");
    }
    const bool again = !ids.insert(key.id).second;
    if (again || (!key.name.empty() && !names.insert(key.name).second)) {
      return usage_error(fmt::format("key {} of a set", i + 1),
                         again ? "it is there already" : fmt::format("'{}' is another's name already", key.name),
                         "leave one of the two out");
    }
    set->by_id_.emplace_back(key.id, i);
  }
  std::ranges::sort(set->by_id_);
  return std::shared_ptr<const KeySet>(set);
}

KeySet::~KeySet() {
  for (Key& key : keys_) {
    OPENSSL_cleanse(key.secret.data(), key.secret.size());
    OPENSSL_cleanse(key.proof.data(), key.proof.size());
  }
}

const Key* KeySet::find(message::KeyId id) const {
  const auto found = std::ranges::lower_bound(by_id_, id, {}, &std::pair<message::KeyId, std::size_t>::first);
  return found != by_id_.end() && found->first == id ? &keys_[found->second] : nullptr;
}

std::string describe_change(const KeySet& before, const KeySet& after) {
  std::string text;
  const auto list = [&](std::string_view verb, const KeySet& of, const auto& belongs) {
    std::string labels;
    for (const Key& key : of.keys()) {
      if (belongs(key)) labels += (labels.empty() ? " " : ", ") + label(key);
    }
    if (!labels.empty()) text += fmt::format("{}{};", verb, labels) + " ";
  };
  list("added", after, [&](const Key& key) { return before.find(key.id) == nullptr; });
  list("removed", before, [&](const Key& key) { return after.find(key.id) == nullptr; });
  list("renamed", after, [&](const Key& key) {
    const Key* const old = before.find(key.id);
    return old != nullptr && old->name != key.name;
  });
  if (text.empty()) text = "nothing changed; ";
  return text + fmt::format("{} in all", after.keys().size());
}

std::shared_ptr<const KeySet> Keys::get() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

void Keys::replace(std::shared_ptr<const KeySet> keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace warpline::protection
