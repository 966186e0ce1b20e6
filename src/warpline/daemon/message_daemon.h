// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/daemon/broker.h"
#include "warpline/daemon/door.h"
#include "warpline/daemon/settings.h"
#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/transport.h"
#include "warpline/transport/wake_up.h"

namespace warpline::daemon {

/// One endpoint for many programs: its loop, the door that lets them in, and the broker between them. One thread runs
/// it; docs/message_daemon.md says what clients can and cannot do.
class MessageDaemon {
 public:
  /// `endpoint` is made of `config`, which is with_room_for_clients(). The transport outlives it. `gives_way`: other
  /// threads need its core. Errors as of Door::open(); environment error: no descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<MessageDaemon>> open(message::Endpoint endpoint,
                                                                   const message::EndpointConfig& config,
                                                                   transport::Transport& transport,
                                                                   const DaemonSettings& settings,
                                                                   bool gives_way = false);
  ~MessageDaemon();  ///< after run() has returned
  MessageDaemon(const MessageDaemon&) = delete;
  MessageDaemon& operator=(const MessageDaemon&) = delete;

  /// Until stop(), and then until peers and clients have got what is under way, or the transport fails.
  void run();

  // By any thread.
  /// Ends run() in peace: nobody new is taken, peers are told, what they have asked is answered while
  /// DaemonSettings::drain lasts; then all sessions are closed, and clients hear that it ends.
  void stop();
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }  ///< run() has returned
  /// Any thread: Endpoint::limit_peers().
  void limit_peers(const message::SessionQuotas& quotas, std::uint32_t stranger_packets) {
    endpoint_.limit_peers(quotas, stranger_packets);
  }
  [[nodiscard]] const message::Endpoint& endpoint() const { return endpoint_; }  ///< for its counters
  [[nodiscard]] const Broker& broker() const { return broker_; }                 ///< for its counters
  [[nodiscard]] const Door& door() const { return *door_; }                      ///< for its counters and records

 private:
  MessageDaemon(message::Endpoint endpoint, const message::EndpointConfig& config, transport::Transport& transport,
                const DaemonSettings& settings, bool gives_way);
  Result<void> prepare(const DaemonSettings& settings);
  bool turn(Nanos now);
  void look(Nanos now);
  [[nodiscard]] bool watch(Attachment& client);
  void unwatch(const Attachment& client);
  void leave(Attachment& client, Nanos now);
  void sleep(Nanos now);
  bool go_on(Nanos now);

  message::Endpoint endpoint_;
  transport::Transport& transport_;
  transport::NanoClock clock_;
  Nanos drain_;
  Nanos poll_for_;
  bool gives_way_;
  int watched_ = -1;  ///< an epoll of the clients' sockets and of wake_
  std::unique_ptr<transport::WakeUp> wake_;
  Broker broker_;
  std::unique_ptr<Door> door_;
  Nanos looked_{};  ///< at the sockets
  std::optional<Nanos> draining_until_;
  bool leaving_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<bool> done_{false};
};

}  // namespace warpline::daemon
