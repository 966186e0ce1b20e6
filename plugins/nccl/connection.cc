// SPDX-License-Identifier: Apache-2.0
#include "nccl/connection.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "nccl/log.h"

namespace warpline::nccl {
namespace {

struct Advice {
  std::string_view why;
  std::string_view fix;
};

Advice advice(message::LossReason reason) {
  using message::LossReason;
  switch (reason) {
    case LossReason::silent:
      return {"nothing was heard of it for the timeout",
              "see whether its process hangs or its host is away; WARPLINE_NCCL_TIMEOUT sets how long is waited"};
    case LossReason::closed:
    case LossReason::restarted:
      return {"it closed the connection", "see the log of the other rank for why it ended"};
    case LossReason::unreachable:
      return {"its process is gone", "see the log of the other rank for why it ended"};
    case LossReason::no_answer:
      return {"it does not answer",
              "let UDP pass between the hosts, and see which NICs both use (NCCL_SOCKET_IFNAME, "
              "WARPLINE_NCCL_DPDK_ADDRESS)"};
    case LossReason::stalled:
      return {"what the one end sends is not what the other has room for",
              "call the collective with the same sizes on all ranks"};
    case LossReason::peer_full:
      return {"there is no room for another session", "use fewer channels: NCCL_MAX_NCHANNELS"};
    case LossReason::wrong_version:
      return {"it speaks another version of the protocol", "use the same plugin on all hosts"};
    default:
      return {message::name(reason), "see the log of the other rank"};
  }
}

}  // namespace

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  std::atomic<int> left = static_cast<int>(paths_.size());
  for (const auto& path : paths_) path->lane.close_path(*path, left);
  for (int now = left.load(std::memory_order_acquire); now != 0; now = left.load(std::memory_order_acquire))
    left.wait(now, std::memory_order_acquire);
}

void Connection::let_go(const void* data, std::size_t bytes) {
  const auto* const from = static_cast<const std::uint8_t*>(data);
  if (closed_ || !uses(from, from + bytes)) return;
  fail(message::LossReason::closed_here);
  close();
}

void Connection::fail(message::LossReason reason) {
  auto none = message::LossReason::none;
  (void)reason_.compare_exchange_strong(none, reason, std::memory_order_acq_rel);
  failed_.store(true, std::memory_order_release);
}

Status Connection::failure() {
  if (!std::exchange(told_, true)) {
    const message::LossReason reason = reason_.load(std::memory_order_acquire);
    const Advice said = advice(reason);
    Error error{ErrorKind::peer, fmt::format("connection with {}", peer_), std::string(said.why),
                std::string(said.fix)};
    const bool unheard = reason == message::LossReason::silent || reason == message::LossReason::no_answer;
    for (const auto& path : paths_) {
      const std::optional<Error> trouble = unheard ? path->lane.trouble() : std::nullopt;
      if (!trouble) continue;
      error.why = trouble->why;
      error.fix = trouble->fix;
    }
    return report(Status::remote_error, error);
  }
  return Status::remote_error;
}

}  // namespace warpline::nccl
