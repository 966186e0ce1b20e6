// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/transport.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {

/// An endpoint with all that it needs to talk over the kernel's UDP sockets, or another transport: clock,
/// socket, buffers and loop. For programs that serve or ask and do nothing else on that thread; who has a loop already
/// takes the pieces.
///
/// One thread makes all calls; stop() is any thread's, and safe in a signal handler.
class MessageHost {
 public:
  /// What a host is opened with.
  struct Settings {
    SocketAddress local{};                ///< of the socket that open() makes; port 0: the kernel chooses one
    message::EndpointConfig endpoint{};   ///< what the endpoint is made of
    std::uint32_t answer_bytes = 65'536;  ///< the longest answer that is given or taken
  };

  /// Writes the answer to a request into `room` and returns its length; nothing: the request is declined.
  using Handler =
      std::function<std::optional<std::size_t>(std::span<const std::uint8_t> request, std::span<std::uint8_t> room)>;

  /// Environment error: no such address or port, or no entropy. Usage error: the endpoint's settings make no sense.
  [[nodiscard]] static Result<MessageHost> open(const Settings& settings);
  /// The same over a transport of the caller's, which outlives the host: such as a queue of a MessagePort.
  [[nodiscard]] static Result<MessageHost> over(transport::Transport& transport, const Settings& settings);

  /// Answers requests until stop(), or until the transport fails. One-way messages are thrown away.
  void serve(const Handler& handler);
  /// Ends serve(), within the fraction of a second that it may sleep.
  void stop() { stop_->store(true, std::memory_order_relaxed); }

  /// Opens a session with a server.
  [[nodiscard]] Result<message::SessionId> connect(const SocketAddress& server);
  /// Asks, and waits for the answer, `patience` at most. Peer error: refused, too late, or the server is gone.
  /// Environment error: the transport has failed.
  [[nodiscard]] Result<std::string> ask(message::SessionId session, std::string_view request,
                                        Nanos patience = {5'000'000'000});

  /// The port that open()'s socket is bound to; 0 over another transport.
  [[nodiscard]] std::uint16_t port() const { return socket_ ? socket_->port() : std::uint16_t{0}; }
  [[nodiscard]] message::Endpoint& endpoint() {
    return endpoint_;
  }  ///< for calls that the host has none for; by its thread

 private:
  MessageHost(transport::Transport& transport, const transport::NanoClock& clock, message::Endpoint endpoint,
              std::uint32_t answer_bytes);

  /// One turn of the loop: gives `handle` what happened, sends what there is, and sleeps until there is more.
  template <typename Handle>
  void turn(const Handle& handle, Nanos until);

  std::unique_ptr<transport::UdpSocket> socket_;  ///< of open()
  transport::Transport* transport_;
  transport::NanoClock clock_;
  message::Endpoint endpoint_;
  std::vector<std::uint8_t> room_;
  std::unique_ptr<std::atomic<bool>> stop_ = std::make_unique<std::atomic<bool>>(false);
};

}  // namespace warpline::rpc
