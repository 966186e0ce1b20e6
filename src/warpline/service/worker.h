// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "warpline/service/app.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/transport.h"

namespace warpline::service {

/// The loop of one thread: an endpoint, what carries its datagrams and what is done with it.
class MessageWorker {
 public:
  /// `gives_way`: other threads need its core, as of Turns.
  MessageWorker(message::Endpoint endpoint, transport::Transport& transport, MessageApp& app,
                const transport::NanoClock& clock, bool gives_way = false)
      : endpoint_(std::move(endpoint)), transport_(transport), app_(app), clock_(clock), gives_way_(gives_way) {}

  /// Until the app is done, on the calling thread.
  void run();
  /// What run() does again and again, for who has several workers on one thread: begin() once, then turns until one
  /// answers false. `worked` becomes true if there was anything to do.
  void begin(Nanos now) { app_.begin(endpoint_, now); }
  bool turn(Nanos now, bool& worked);

  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
  /// Any thread: Endpoint::limit_peers().
  void limit_peers(const message::SessionQuotas& quotas, std::uint32_t stranger_packets) {
    endpoint_.limit_peers(quotas, stranger_packets);
  }
  [[nodiscard]] const message::Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] const transport::Transport& transport() const { return transport_; }
  [[nodiscard]] const MessageApp& app() const { return app_; }

 private:
  static constexpr std::size_t kEvents = 64;
  /// Polling goes on for so long without work before the thread sleeps: a wake-up costs some of it.
  static constexpr std::int64_t kPatience = 50'000;  // ns

  message::Endpoint endpoint_;
  transport::Transport& transport_;
  MessageApp& app_;
  const transport::NanoClock& clock_;
  bool gives_way_;
  std::array<message::MessageEvent, kEvents> events_;
  std::atomic<bool> done_{false};
};

}  // namespace warpline::service
