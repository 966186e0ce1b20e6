// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "warpline/base/address.h"

namespace kv {

/// What a reader of a scan's records calls for each of them.
using TakeRecord = std::function<void(std::string_view key, std::string_view value)>;

/// Who is told what became of an operation.
class Ended {
 public:
  Ended() = default;
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  virtual ~Ended() = default;
  /// Operation `which` has ended, well or not. `answer`: of a read the value, of a scan what each_record() takes apart.
  virtual void ended(std::size_t which, bool ok, std::string_view answer) = 0;
};

/// A server of keys and values as the load sees it. Operations under way have numbers below connections times
/// outstanding, as it was opened with; one that has ended may be used again within ended().
class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  virtual void read(std::size_t which, std::string_view key) = 0;
  virtual void write(std::size_t which, std::string_view key, std::string_view value) = 0;
  virtual void scan(std::size_t which, std::string_view key, std::uint32_t count) = 0;
  /// Sends what there is, and tells what has ended; sleeps until something has, a fraction of a second at most. False:
  /// the server is lost.
  virtual bool turn(Ended& ended) = 0;
  virtual void each_record(std::string_view scanned, const TakeRecord& take) const = 0;
};

/// Sessions with a kv_server; no answer has more than `answer_bytes`. Null: says why on stderr.
std::unique_ptr<Target> open_warpline(const warpline::SocketAddress& server, std::size_t connections,
                                      std::size_t outstanding, std::size_t answer_bytes);
/// Connections to a Redis server. Null: says why on stderr. It keeps no order of keys, so that scan() is not allowed.
std::unique_ptr<Target> open_redis(const warpline::SocketAddress& server, std::size_t connections,
                                   std::size_t outstanding, std::size_t answer_bytes);

}  // namespace kv
