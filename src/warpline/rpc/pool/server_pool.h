// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/message_host.h"
#include "warpline/rpc/pool/server_pool_settings.h"

namespace warpline::rpc {

class PooledCalls;

/// Servers that do the same, as one: each call goes to the less loaded of two randomly drawn ones. A server that
/// answers neither hellos nor calls is left out and looked for again, with waits that double. A call that no server has
/// handled goes on to another one; one that is Call::idempotent is also tried again, or sent to two, as far as a budget
/// goes.
///
/// The work is done by the host's thread, which the host's loop is on. An endpoint may have several pools.
class ServerPool {
 public:
  /// The host outlives the pool and is not moved any more; this is called, and the pool destroyed, by the host's
  /// thread, or while the loop does not run. The sessions are opened by the loop. Usage error: no servers, or settings
  /// that make no sense. Environment error: no entropy.
  [[nodiscard]] static Result<std::unique_ptr<ServerPool>> make(MessageHost& host,
                                                                std::span<const SocketAddress> servers,
                                                                const ServerPoolSettings& settings);
  /// Ends the calls that are under way as cancelled, on this thread, and closes the sessions. Other threads make no
  /// calls any more: of handlers on threads of the same host, MessageHost::end_handlers() sees to it. Not in a callback
  /// of the pool.
  ~ServerPool();
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  /// Who sees calls begin and end, each once, however many attempts it took; null: nobody. It outlives the pool. By the
  /// host's thread, or while the loop does not run.
  void observe(CallObserver* observer);

  // By any thread, at any time.
  /// Asks a server that the pool chooses, whatever Call::session is, and tells `done` of the end, on the host's thread:
  /// as MessageHost::submit() does. CallResult::reach is the furthest of all attempts.
  SubmittedCall submit(const Call& call, const CallDone& done);
  [[nodiscard]] bool in_callback() const;  ///< of the pool's host: see MessageHost::in_callback()
  /// Ends a call as cancelled. False: it has ended, or is being cancelled already.
  bool cancel(CallId id);
  [[nodiscard]] std::size_t size() const;                      ///< servers
  [[nodiscard]] ServerFacts server(std::size_t number) const;  ///< `number` below size(), in the order of make()
  [[nodiscard]] const PoolCounters& counters() const;          ///< live, as long as the pool

 private:
  struct Parts;
  explicit ServerPool(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace warpline::rpc
