// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kv {

/// Keys with values, in memory. Any thread may call; a key's operations take effect one after another.
class Store {
 public:
  /// Calls `take(std::string_view)` with the key's value, which stays as it is until that returns. False: there is
  /// none.
  template <typename Take>
  bool read(std::string_view key, const Take& take) const {
    const Shard& shard = shard_of(key);
    const std::shared_lock lock(shard.mutex);
    const auto found = shard.values.find(key);
    if (found == shard.values.end()) return false;
    take(std::string_view(found->second));
    return true;
  }

  void write(std::string_view key, std::string_view value) {
    Shard& shard = shard_of(key);
    const std::unique_lock lock(shard.mutex);
    if (const auto found = shard.values.find(key); found != shard.values.end()) {
      found->second = value;
      return;
    }
    shard.values.emplace(key, value);
    const std::unique_lock ordered(order_mutex_);
    order_.emplace(key);
  }

  /// False: there was none.
  bool remove(std::string_view key) {
    Shard& shard = shard_of(key);
    const std::unique_lock lock(shard.mutex);
    const auto found = shard.values.find(key);
    if (found == shard.values.end()) return false;
    shard.values.erase(found);
    const std::unique_lock ordered(order_mutex_);
    order_.erase(order_.find(key));
    return true;
  }

  /// The first `count` keys that are not less than `from`, in their order. Each may be gone when it is read.
  [[nodiscard]] std::vector<std::string> keys(std::string_view from, std::size_t count) const {
    std::vector<std::string> found;
    const std::shared_lock ordered(order_mutex_);
    for (auto at = order_.lower_bound(from); at != order_.end() && found.size() < count; ++at) found.push_back(*at);
    return found;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
  };
  struct alignas(64) Shard {
    mutable std::shared_mutex mutex;
    std::unordered_map<std::string, std::string, Hash, std::equal_to<>> values;
  };

  // The table of a shard uses the lower bits.
  [[nodiscard]] Shard& shard_of(std::string_view key) { return shards_[Hash{}(key) >> 58]; }
  [[nodiscard]] const Shard& shard_of(std::string_view key) const { return shards_[Hash{}(key) >> 58]; }

  std::array<Shard, 64> shards_;
  mutable std::shared_mutex order_mutex_;  ///< taken behind a shard's, never before
  std::set<std::string, std::less<>> order_;
};

}  // namespace kv
