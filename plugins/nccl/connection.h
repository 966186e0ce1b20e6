// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nccl/abi.h"
#include "nccl/lane.h"
#include "warpline/message/types.h"

namespace warpline::nccl {

class Connection;

/// What NCCL holds while a transfer is under way, and asks about by test().
struct Request {
  Connection* connection = nullptr;
};

/// One way from a sender to a receiver: what both ends of it have. NCCL's calls come from one thread at a time.
class Connection {
 public:
  /// `home`: the path that both ends take where one is enough.
  Connection(std::string peer, std::vector<std::shared_ptr<void>> keeps, std::size_t home)
      : home_(home), peer_(std::move(peer)), keeps_(std::move(keeps)) {}
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// What the transfer has come to: done, under way, or the error that ended it. `sizes` may be null.
  virtual Status test(Request& request, int* done, int* sizes) = 0;
  /// Ends the sessions, and waits until no lane reads or writes NCCL's memory. Before the end; a second call does
  /// nothing.
  void close();
  /// NCCL takes memory back: if a transfer that has not ended is in it, which is so when NCCL aborts, ends the
  /// sessions.
  void let_go(const void* data, std::size_t bytes);

  /// Says once why the connection is no more; the first reason counts. Any thread.
  void fail(message::LossReason reason);
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// What NCCL is told of it; logs it the first time. By NCCL's thread.
  [[nodiscard]] Status failure();

  [[nodiscard]] std::span<const std::unique_ptr<Path>> paths() const { return paths_; }
  /// A session of the connection is agreed upon by both ends.
  void join() { joined_.fetch_add(1, std::memory_order_acq_rel); }
  /// Whether all are.
  [[nodiscard]] bool joined() const { return joined_.load(std::memory_order_acquire) == paths_.size(); }

 protected:
  /// Whether a transfer that has not ended reads or writes what is between them.
  [[nodiscard]] virtual bool uses(const std::uint8_t* from, const std::uint8_t* to) const = 0;

  std::size_t home_;
  std::vector<std::unique_ptr<Path>> paths_;  ///< set once, before any lane knows of them

 private:
  std::string peer_;                          ///< for the log
  std::vector<std::shared_ptr<void>> keeps_;  ///< whose lanes the paths are on
  std::atomic<bool> failed_{false};
  std::atomic<message::LossReason> reason_{message::LossReason::none};
  std::atomic<std::size_t> joined_{0};
  bool told_ = false;
  bool closed_ = false;
};

}  // namespace warpline::nccl
