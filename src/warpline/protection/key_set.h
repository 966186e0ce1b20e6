// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/message/types.h"
#include "warpline/protection/aes_gcm.h"

namespace warpline::protection {

/// A key that both ends of a session are given.
struct GivenKey {
  AesKey secret{};   ///< 16 random bytes
  std::string name;  ///< for people, as is_key_name() has it; empty: none
};

/// A given key with what is made of it once, by HKDF.
struct Key {
  AesKey secret{};                       ///< as it was given
  std::array<std::uint8_t, 32> proof{};  ///< what handshakes are proven with
  message::KeyId id = 0;                 ///< names it in hellos and tells nothing of it; never 0
  std::string name;                      ///< for people; empty: none
};

/// True for 1 to 32 letters, digits, '.', '_' and '-' that could not be a key's own digits.
[[nodiscard]] bool is_key_name(std::string_view name);
/// Returns the name, or the id in 16 hexadecimal digits if it has none.
[[nodiscard]] std::string label(const Key& key);

/// The keys of an endpoint, at least one. Does not change. Wipes its secrets when it goes.
class KeySet {
 public:
  /// Fails with a usage error if there is none, and if two are the same or have the same name; with an environment
  /// error if this OpenSSL has no HKDF.
  [[nodiscard]] static Result<std::shared_ptr<const KeySet>> make(std::span<const GivenKey> keys);
  KeySet(const KeySet&) = delete;
  KeySet& operator=(const KeySet&) = delete;
  ~KeySet();

  /// Returns them all, in their order; the first protects the sessions that are opened here.
  [[nodiscard]] std::span<const Key> keys() const { return keys_; }
  /// Returns the key of this id, or nullptr.
  [[nodiscard]] const Key* find(message::KeyId id) const;

 private:
  KeySet() = default;

  std::vector<Key> keys_;  ///< never grows: what it leaves behind would not be wiped
  std::vector<std::pair<message::KeyId, std::size_t>> by_id_;  ///< sorted
};

/// Says in one line what of `before` is another in `after`, by labels.
[[nodiscard]] std::string describe_change(const KeySet& before, const KeySet& after);

/// The keys that protections go by, which may be replaced while their endpoints run. Sessions that live keep what they
/// began with, and handshakes under way the key that they named; others see the new keys from their next handshake on.
/// Any thread may call.
class Keys {
 public:
  explicit Keys(std::shared_ptr<const KeySet> keys) : keys_(std::move(keys)) {}

  /// Returns those in force.
  [[nodiscard]] std::shared_ptr<const KeySet> get() const;
  /// Puts others in force.
  void replace(std::shared_ptr<const KeySet> keys);
  /// Returns another number after each replace(), without a lock.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const KeySet> keys_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace warpline::protection
