// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/message/config.h"
#include "warpline/message/counters.h"
#include "warpline/rpc/message_host.h"
#include "warpline/transport/transport.h"

namespace warpline::rpc {

/// One address that several threads serve, each with an endpoint of its own, and no lock between them. A peer's port
/// belongs to one of them, with all its sessions: over the kernel's sockets by the kernel's hash of addresses and
/// ports, over a port by its queues. Handlers run on the thread of the session's endpoint, and a slow one holds up that
/// thread's sessions alone. Sessions are opened to it; those that it opens to others belong in a MessageHost of their
/// own.
///
/// It may be moved before run().
class MultiEndpoint {
 public:
  /// What it is opened with.
  struct Settings {
    /// Each thread's host is opened with all of it: sizes and quotas are those of one thread. `endpoint.endpoint` and
    /// `endpoint.endpoints` are set by open().
    MessageHost::Settings host{};
    std::uint32_t threads = 2;  ///< 1 to 256
    /// Gives an endpoint what threads cannot share: a PacketProtection, or a BufferSource that is no thread's but its
    /// own. Called for each thread by open(). Null: nothing is changed.
    std::function<void(std::uint32_t thread, message::EndpointConfig& config)> adjust{};
  };
  /// Makes a thread's handler, which no other thread calls.
  using MakeHandler = std::function<MessageHost::Handler(std::uint32_t thread)>;

  /// Over sockets on one port. Environment and usage errors as of UdpSocket::open_group() and MessageHost::open().
  /// Usage error: two endpoints have the same PacketProtection.
  [[nodiscard]] static Result<MultiEndpoint> open(const Settings& settings);
  /// Over transports of the caller's, one a thread, whatever Settings::threads says, which outlive it: all queues of a
  /// MessagePort, or an UdpSocket::open_group().
  [[nodiscard]] static Result<MultiEndpoint> over(std::span<transport::Transport* const> transports,
                                                  const Settings& settings);
  MultiEndpoint(MultiEndpoint&&) noexcept;  ///< takes the other's all: that one is then to be destroyed, no more
  MultiEndpoint& operator=(MultiEndpoint&&) = delete;
  ~MultiEndpoint();  ///< after run() has returned

  [[nodiscard]] std::uint32_t threads() const;  ///< how many endpoints there are
  /// A thread's host, below threads(). Before run(): for listen(), observe(), handle_on_threads() and the like. Then
  /// for what any thread may call, and for all else on its own thread.
  [[nodiscard]] MessageHost& host(std::uint32_t thread);

  /// Runs all hosts' loops, the first on this thread and each other one on a thread of its own, until stop(), until all
  /// are drained, or until one's transport fails, which stops them all. Once. Environment error: no thread can be
  /// started.
  Result<void> run();
  /// Has each thread answer requests by a handler of its own (MessageHost::handle()), and run().
  Result<void> serve(const MakeHandler& make);

  // By any thread, at any time.
  void stop();  ///< ends run() as soon as no handler runs; safe in a signal handler
  /// Ends run() in peace, as MessageHost::drain() has it, of all hosts at once. Safe in a signal handler.
  void drain(Nanos patience);
  [[nodiscard]] std::uint16_t port() const;  ///< that open()'s sockets are bound to; 0 over other transports
  /// Returns the sum over all endpoints of a counter, such as total(&message::EndpointCounters::handled).
  [[nodiscard]] std::uint64_t total(Counter message::EndpointCounters::* counter) const;
  [[nodiscard]] std::uint64_t total(Counter transport::TransportCounters::* counter) const;  ///< of all transports
  [[nodiscard]] std::uint64_t dropped(message::MessageDrop reason) const;                    ///< by all endpoints

 private:
  struct Parts;
  explicit MultiEndpoint(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace warpline::rpc
