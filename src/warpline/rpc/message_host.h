// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/handler_threads.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/streams/call_stream.h"
#include "warpline/rpc/streams/call_streams.h"
#include "warpline/rpc/streams/stream_threads.h"
#include "warpline/transport/transport.h"

namespace warpline::rpc {

/// An endpoint with all that it needs to talk over the kernel's UDP sockets, or another transport: clock, socket,
/// buffers and loop. One thread has the loop and makes all calls but those that say otherwise: run() sleeps until there
/// is something to do; in a loop of one's own, descriptor() and turn() take its place.
///
/// It may be moved before the loop begins and other threads know it.
class MessageHost {
 public:
  /// What a host is opened with.
  struct Settings {
    SocketAddress local{};                ///< of the socket that open() makes; port 0: the kernel chooses one
    message::EndpointConfig endpoint{};   ///< what the endpoint is made of
    std::uint32_t answer_bytes = 65'536;  ///< the longest answer that is given or taken
    /// Those of submit() and post() that may be under way at once. The endpoint has places for all that wait for others
    /// of their session: more than `endpoint` says, if need be.
    std::uint32_t calls = 1024;
    /// How long run() looks for work before it sleeps, or, over a transport that only polls, before it gives way to
    /// other threads of its core. A wake-up takes tens of microseconds; polling, a processor. Unless set: not at all,
    /// and 50 us; less of that is for ends that share a core.
    std::optional<Nanos> poll_for{};
    CallStreamSettings streams{};  ///< calls in pieces, opened and taken; none unless it says how many
  };

  /// Writes the answer to a request into `room` and returns its length; nothing, or more than there is room for: the
  /// request is declined.
  using Handler =
      std::function<std::optional<std::size_t>(std::span<const std::uint8_t> request, std::span<std::uint8_t> room)>;
  /// Is told of what is neither a request nor the end of a call: sessions, one-way messages, which are released when it
  /// returns, and what was begun with endpoint(). By the host's thread.
  using Listener = std::function<void(const message::MessageEvent& event)>;

  /// Environment error: no such address or port, no descriptor left, or no entropy. Usage error: the settings make no
  /// sense.
  [[nodiscard]] static Result<MessageHost> open(const Settings& settings);
  /// The same over a transport of the caller's, which outlives the host: such as a queue of a MessagePort.
  [[nodiscard]] static Result<MessageHost> over(transport::Transport& transport, const Settings& settings);
  MessageHost(MessageHost&&) noexcept;  ///< takes the other's all: that one is then to be destroyed, no more
  MessageHost& operator=(MessageHost&&) = delete;
  /// Ends the calls that are under way as cancelled, on this thread, waits for handlers that run on threads, and closes
  /// the sessions that connect() opened. Other threads make no calls any more, but handlers may, which end likewise.
  /// Other hosts that its handlers call, and pools there, outlive it, and their loops run meanwhile, unless
  /// end_handlers() has ended the handlers before. Not in a callback.
  ~MessageHost();

  // What is done with what arrives. Without a handler, or a RequestQueue, requests are declined.
  /// Answers requests on the host's thread. Answers that the endpoint has no memory for wait where they were written;
  /// while too many do, requests wait with the endpoint. In a callback: from the loop's next step on, as of listen().
  void handle(Handler handler);
  /// Answers requests on threads of their own, which wake the loop (HandlerThreadsSetup::wake is set here). Errors as
  /// of HandlerThreads::start().
  Result<void> handle_on_threads(HandlerThreadsSetup setup, HandlerThreads::Handler handler);
  /// Takes calls in pieces, on the host's thread: each is handed out when it opens; see CallStream::listen(). Usage
  /// error: Settings::streams are none.
  Result<void> take_streams(CallStreams::Taker taker);
  /// Takes calls in pieces to threads of their own, each one at a time. Errors as of CallStreamThreads::start() and
  /// take_streams().
  Result<void> take_streams_on_threads(unsigned threads, CallStreamThreads::Handler handler);
  /// Ends the handlers on threads of all these hosts, and waits for those that run. What they wait for meanwhile ends
  /// as cancelled: calls of these hosts and of their parts, such as a ServerPool, which leave the loops. To be called
  /// before the first host ends whose handlers are called by others, or before a pool that handlers of its own host
  /// call; after the loops have ended, by one thread.
  static void end_handlers(std::span<MessageHost* const> hosts);
  void listen(Listener listener);  ///< one at most; a second takes the place of the first
  /// Who sees calls and requests begin and end, from now on; null: nobody. Before handle_on_threads(), and before the
  /// loop begins. It outlives the host.
  void observe(CallObserver* observer);

  // The loop. In a callback of the host run() and turn() do nothing: the loop that called back goes on.
  void run();                   ///< until stop(), until all is drained, or until the transport fails
  void serve(Handler handler);  ///< handle() and run()
  /// For a loop of one's own: readable when turn() has something to do. Call turn() once before the first sleep.
  /// Usage error: the transport only polls; so does the loop then. Environment error: no descriptor left.
  [[nodiscard]] Result<int> descriptor();
  /// Does what there is to do, some bursts at most, and does not sleep. False: the transport has failed.
  bool turn();

  /// Opens a session with a server.
  [[nodiscard]] Result<message::SessionId> connect(const SocketAddress& server);
  /// Asks, and runs the loop until the answer is there, `patience` at most. Peer error: refused, too late, or the
  /// server is gone, with the reason. Environment error: the transport has failed, which ends all calls. Usage error:
  /// in a callback of the host, where a handler that needs an answer of another server submit()s, or is one of
  /// handle_on_threads() and waits for a PendingCall.
  [[nodiscard]] Result<std::string> ask(message::SessionId session, std::string_view request,
                                        Nanos patience = {5'000'000'000});
  [[nodiscard]] message::Endpoint& endpoint();  ///< for calls that the host has none for
  /// The loop does what the part has to do, too, until leave(). The host is not moved any more.
  void join(LoopPart& part);
  /// The part leaves the loop, after it was given the events that wait. Not in a callback of the part's own.
  void leave(LoopPart& part);
  [[nodiscard]] transport::WakeUp& wake_up();  ///< for parts that other threads hand something to; lives as the host

  // By any thread, at any time.
  /// Whether this thread is in a callback of the host, where it must not wait for what the host's loop does.
  [[nodiscard]] bool in_callback() const;
  void stop();  ///< ends run(), at once; safe in a signal handler
  /// Ends run() in peace, as Endpoint::drain() has it: requests that have come are answered, others are refused so that
  /// clients may ask somebody else, and these end their sessions; `patience`, a duration, at most. Safe in a signal
  /// handler. In a loop of one's own Endpoint::drained() says when it is over.
  void drain(Nanos patience);
  /// Asks, and tells `done` of the end, on the host's thread. What the session has no slot or the endpoint no memory
  /// for waits, in order. PendingCall and CompletionQueue are for threads that want to wait or to poll.
  SubmittedCall submit(const Call& call, const CallDone& done);
  /// Opens a call in pieces. `not_allowed`: Settings::streams are none. The stream is let go before the host ends.
  OpenedStream open_stream(const StreamCall& call);
  /// Counts what became of streams. Null: Settings::streams are none.
  [[nodiscard]] const CallStreamCounters* stream_counters() const;
  /// Ends a call as cancelled. False: it has ended, or is being cancelled already.
  bool cancel(CallId id);
  /// Has the host's thread run this. False: there is no room among the calls.
  bool post(void (*task)(void* context), void* context);
  [[nodiscard]] Nanos now() const;           ///< on the endpoint's clock
  [[nodiscard]] std::uint16_t port() const;  ///< that open()'s socket is bound to; 0 over another transport

 private:
  friend class MultiEndpoint;
  struct Loop;
  static void end_handlers(std::span<MessageHost* const> hosts, bool with_parts);
  explicit MessageHost(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace warpline::rpc
