// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/applications/application.h"

namespace warpline::sim {

/// What a host asks of another, for figures: the same request again and again. Bytes.
struct BulkPlan {
  std::uint32_t server = 0;   ///< host
  std::uint32_t servers = 1;  ///< it and those that follow, asked in turns
  bool one_server = false;    ///< all of them are `server`: so many sessions with it
  std::int64_t last_at = 0;   ///< virtual time from which on the last of them is asked
  std::uint32_t request_bytes = 64 << 10;
  std::uint32_t answer_bytes = 8;
  std::uint32_t at_once = 0;                                       ///< 0: a server alone
  std::function<void(std::uint64_t request)> before_request = {};  ///< called with its number, if set
};

/// Sends the requests of its plan, answers all that come; contents do not matter.
class BulkApplication final : public Application {
 public:
  explicit BulkApplication(const BulkPlan& plan);

  void start(Host& host) override;
  void handle(const message::MessageEvent& event) override;
  void wake(std::uint64_t server) override { ask_all(static_cast<std::uint32_t>(server)); }
  void crash() override {}

  /// Completions since the begin or forget_statistics().
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  /// Nanoseconds from request to completion.
  [[nodiscard]] const std::vector<std::int64_t>& latencies() const { return latencies_; }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t server) const { return completed_by_[server - plan_.server]; }
  [[nodiscard]] double goodput_bytes() const { return static_cast<double>(completed_) * plan_.request_bytes; }
  [[nodiscard]] message::SessionId session() const { return sessions_[0]; }
  void forget_statistics();

 private:
  void ask(std::uint32_t slot);
  void ask_all(std::uint32_t server);

  BulkPlan plan_;
  Host* host_ = nullptr;
  std::vector<message::SessionId> sessions_;  ///< one a server
  std::vector<std::uint8_t> request_;
  std::vector<std::uint8_t> answer_;
  std::vector<std::uint64_t> completed_by_;  ///< by server
  std::vector<std::vector<std::uint8_t>> rooms_;
  std::vector<std::int64_t> asked_at_;  ///< by slot
  std::uint64_t asked_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t failed_ = 0;
  std::vector<std::int64_t> latencies_;
};

}  // namespace warpline::sim
