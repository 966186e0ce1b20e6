// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runs.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/service/app.h"

namespace warpline {

/// Requests of 32 bytes, so many under way in all, each in the next session's turn.
class RotatingClient final : public service::MessageApp {
 public:
  RotatingClient(const MessageRun& run, const message::PeerAddress& peer, const std::atomic<bool>& stop)
      : run_(run), peer_(peer), stop_(stop), responses_(run.outstanding) {}

  void begin(message::Endpoint& endpoint, Nanos now) override { connect_some(endpoint, now); }
  void handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override {
    if (event.kind == message::EventKind::connected) {
      if (++connected_ == run_.sessions) {
        for (std::uint32_t slot = 0; slot < run_.outstanding; ++slot) ask(endpoint, slot, now);
      } else {
        connect_some(endpoint, now);
      }
    } else if (event.kind == message::EventKind::response && !closed_) {
      if (event.status != message::MessageStatus::ok || event.length != sizeof(message_)) std::abort();
      done_.add(1);
      ask(endpoint, static_cast<std::uint32_t>(event.context), now);
    }
  }
  bool turn(message::Endpoint& endpoint, Nanos now) override {
    if (!stop_.load(std::memory_order_relaxed)) return true;
    if (closed_) return false;
    closed_ = true;
    for (const message::SessionId& session : sessions_) (void)endpoint.close(session, now);
    return true;
  }

  [[nodiscard]] std::uint64_t done() const { return done_.get(); }

 private:
  static constexpr std::uint32_t kOpening = 64;

  void connect_some(message::Endpoint& endpoint, Nanos now) {
    while (sessions_.size() < run_.sessions && sessions_.size() < connected_ + kOpening) {
      sessions_.push_back(endpoint.connect(peer_, {}, now).session);
    }
  }
  void ask(message::Endpoint& endpoint, std::uint32_t slot, Nanos now) {
    if (stop_.load(std::memory_order_relaxed)) return;
    const message::SessionId session = sessions_[next_];
    next_ = next_ + 1 == sessions_.size() ? 0 : next_ + 1;
    constexpr std::uint32_t kAhead = 6;
    endpoint.prefetch(sessions_[(next_ + kAhead) % sessions_.size()]);
    const auto length = static_cast<std::uint32_t>(sizeof(message_));
    const message::Submitted made =
        endpoint.request(session, {message_, length}, {responses_[slot].data(), length},
                         {.context = slot, .code = static_cast<std::uint16_t>(service::MessageService::echo)}, now);
    if (made.status != message::CallStatus::ok) std::abort();
  }

  MessageRun run_;
  message::PeerAddress peer_;
  const std::atomic<bool>& stop_;
  std::uint8_t message_[32] = {};
  std::vector<std::array<std::uint8_t, 32>> responses_;
  std::vector<message::SessionId> sessions_;
  std::uint32_t connected_ = 0;
  std::uint32_t next_ = 0;
  bool closed_ = false;
  Counter done_;
};

}  // namespace warpline
