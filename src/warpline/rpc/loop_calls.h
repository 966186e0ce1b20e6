// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call.h"
#include "warpline/rpc/call_rows.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/message_host.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// The end of a call of LoopCalls.
struct LoopCallEnd {
  std::uint32_t place = 0;  ///< as add() returned it
  CallResult result;        ///< how it ended; `data` is there until release(). Metadata is not kept
};

/// Calls to one server by one thread that has an event loop of its own: calls that are made in one turn of it leave
/// together, any number may be made, their ends come in batches, and responses may be of any length. Opens the session
/// again, with the next call, when it was lost.
class LoopCalls final : public LoopPart {
 public:
  /// How many rows of CallRows are under way at once, of all arrays.
  static constexpr std::uint32_t kRows = 256;

  /// Joins the host's loop, before that begins, and opens a session with the server. The host's Settings::calls are
  /// `calls`, of which all others wait here, and kRows beside; nobody else makes calls by it. Outlives the host.
  /// Usage error: no session can be had. Environment error: no descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<LoopCalls>> make(MessageHost& host, const SocketAddress& server,
                                                               std::uint32_t calls);
  LoopCalls(const LoopCalls&) = delete;
  LoopCalls& operator=(const LoopCalls&) = delete;

  // By the one thread that makes calls.
  /// Makes a call, which leaves with the next flush(). `session` and `metadata` are not looked at; up to kInlineBytes
  /// of host memory are copied, a longer message stays untouched until poll() tells the end. Without `response` its
  /// memory is allocated here. Returns the call's place, the lowest ones first.
  std::uint32_t add(const Call& call);
  /// Makes calls of rows, which go on by themselves until they all have ended or one fails: then result.status and so
  /// on are those of CallRows::failure(). `rows` stays untouched until poll() tells the end.
  std::uint32_t add(CallRows& rows);
  /// Gives the host as many of the calls as it has room for; the rest leaves when others have ended.
  void flush();
  /// Ends a call, or those of rows, as cancelled, unless it has ended already; poll() tells so.
  void cancel(std::uint32_t place);
  /// Fills `ends` from the front; returns how many.
  std::size_t poll(std::span<LoopCallEnd> ends);
  /// Gives the place of an ended call back.
  void release(std::uint32_t place);
  /// Calls that were made and whose end poll() has not told.
  [[nodiscard]] std::size_t under_way() const { return under_way_; }
  /// To be called before a sleep on descriptor(), after a poll() that found nothing: it is readable then from the next
  /// end on, until poll(). False: there may be something, poll again.
  [[nodiscard]] bool arm();
  /// For poll(2) or epoll, after arm(). The object's; nobody else reads or writes it.
  [[nodiscard]] int descriptor() const { return wake_->descriptor(); }

  // By any thread.
  /// The session; the same when it was opened again.
  [[nodiscard]] message::SessionId session() const { return session_; }
  /// Why the session was lost last.
  [[nodiscard]] message::LossReason loss() const { return loss_.load(std::memory_order_relaxed); }

  // By the host's thread.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  bool advance(message::Endpoint& endpoint, bool moved, Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override { return message::kNever; }
  /// Ends all calls as `peer_lost`, and those that are made from now on.
  void leave(message::Endpoint& endpoint, Nanos now) override;

 private:
  struct Place {
    LoopCalls* owner = nullptr;
    std::uint32_t index = 0;
    Call call;
    CallRows* rows = nullptr;
    CallId id;
    Nanos made;              ///< the time of add(), which patience counts from
    bool submitted = false;  ///< the host has it
    bool stopped = false;    ///< cancelled before that
    CallResult result;
    std::array<std::uint8_t, message::kInlineBytes> copy;  ///< of a short message, then of a short response
    std::unique_ptr<std::uint8_t[]> memory;                ///< of a longer response
  };

  LoopCalls(std::unique_ptr<transport::WakeUp> wake, MessageHost& host, message::SessionId session,
            std::uint32_t calls);
  std::uint32_t take();
  /// False: there is no room now.
  bool submit(Place& place);
  void end_here(Place& place, message::MessageStatus status);
  void reopen();
  void end(Place& place, const CallResult& result);
  void begin(Place& place);
  static void call_ended(void* place, std::uint64_t tag, const CallResult& result);

  std::unique_ptr<transport::WakeUp> wake_;  ///< of who makes calls
  MessageHost& host_;
  const message::SessionId session_;
  const std::uint32_t calls_;
  std::atomic<message::LossReason> loss_{message::LossReason::none};
  std::atomic<bool> lost_{false};
  std::atomic<bool> left_{false};
  SpscRing<Place*> ended_;  ///< from the host's thread

  // Owned by the thread that makes calls.
  std::deque<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> held_;         ///< added, and not given to the host
  std::vector<std::uint32_t> ended_here_;  ///< before the host had them
  std::size_t under_way_ = 0;
  std::uint32_t submitted_ = 0;  ///< those that the host has, or whose end waits in the ring
  bool armed_ = false;

  // The host's.
  CallRows* rows_ = nullptr;  ///< the first of those under way
  bool told_ = false;         ///< since the last turn
};

}  // namespace warpline::rpc
