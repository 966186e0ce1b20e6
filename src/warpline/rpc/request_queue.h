// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/message/types.h"
#include "warpline/rpc/call_observer.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/message_host.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// A request of a peer, or what became of one, as RequestQueue::poll() tells it.
struct QueuedRequest {
  /// What it tells.
  enum class Kind : std::uint8_t {
    request,    ///< is to be answered or declined, once, now or later
    withdrawn,  ///< its peer gave it up: an answer goes nowhere, but must still be given
    sent,       ///< its answer, which was longer than kInlineBytes, is not read any more
  };
  Kind kind = Kind::request;                 ///< says which of the others mean anything
  std::uint32_t place = 0;                   ///< names the request until it was answered; then others
  message::SessionId session{};              ///< of a request: that it came by
  std::uint16_t code = 0;                    ///< of a request: as the peer gave it
  message::ConstBuffer data{};               ///< of a request: there until it was answered
  std::span<const std::uint8_t> metadata{};  ///< of a request: there as long as `data`
  Nanos deadline = message::kNever;          ///< of a request: when the peer gives it up, by MessageHost::now()
};

/// Where requests that a host has received wait for one thread to take them, such as that of an event loop, which
/// answers them when it likes, in any order. What it has no place for stays with the endpoint, whose windows hold the
/// peers back. Nobody locks, waits or allocates.
class RequestQueue final : public LoopPart {
 public:
  /// Joins the host's loop, before that begins, and takes the requests of a host without a handler: `requests` of them
  /// at once, at least one. `observer`, if any, is told of them on the host's thread. Outlives the host, as answers
  /// that have not left do. Environment error: no descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<RequestQueue>> make(MessageHost& host, std::uint32_t requests,
                                                                  CallObserver* observer = nullptr);
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;

  // By the one thread that takes them.
  /// Fills `requests` from the front; returns how many.
  std::size_t poll(std::span<QueuedRequest> requests);
  /// Answers a request. Up to kInlineBytes are copied; a longer answer, which may be part of the request, stays
  /// untouched until `sent`. Leaves with the next flush().
  void answer(std::uint32_t place, message::ConstBuffer answer, std::uint16_t code = 0);
  /// Gives a request back: the peer is told that it was declined. Leaves with the next flush().
  void decline(std::uint32_t place);
  /// Has the host's thread take all that was answered and declined.
  void flush();
  /// To be called before a sleep on descriptor(), after a poll() that found nothing: it is readable then from the next
  /// request on, until poll(). False: there may be something, poll again.
  [[nodiscard]] bool arm();
  /// For poll(2) or epoll, after arm(). The object's; nobody else reads or writes it.
  [[nodiscard]] int descriptor() const { return wake_->descriptor(); }

  // By the host's thread.
  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  bool advance(message::Endpoint& endpoint, bool moved, Nanos now) override;
  [[nodiscard]] std::optional<std::uint32_t> request_room() const override {
    return static_cast<std::uint32_t>(free_.size());
  }
  [[nodiscard]] Nanos next_deadline() const override { return message::kNever; }
  /// Declines what is not answered. Answers that are on their way are read until the host has ended.
  void leave(message::Endpoint& endpoint, Nanos now) override;

 private:
  enum class State : std::uint8_t {
    free,
    asked,    ///< the taker has it
    leaving,  ///< its answer ends with an event
  };
  struct Place {
    // The taker's, but for who frees it: the host's, between the rings.
    message::ConstBuffer answer{};
    std::uint16_t answer_code = 0;
    bool declined = false;
    std::array<std::uint8_t, message::kInlineBytes> copy;  ///< of a short answer
    bool open = false;                                     ///< the taker's: it owes an answer
    // The host's.
    State state = State::free;
    message::MessageId id;
    ObservedRequest observed;
    Nanos began;
  };

  RequestQueue(std::unique_ptr<transport::WakeUp> wake, transport::WakeUp& host, std::uint32_t requests,
               CallObserver* observer);
  void accept(const message::MessageEvent& request, Nanos now);
  void tell(const QueuedRequest& news);
  /// False if it has to be tried again.
  bool give(message::Endpoint& endpoint, std::uint32_t index, Nanos now);
  [[nodiscard]] std::optional<std::uint32_t> find(const message::MessageId& id, State state) const;

  std::unique_ptr<transport::WakeUp> wake_;  ///< of who takes them
  transport::WakeUp& host_;
  CallObserver* observer_;
  std::vector<Place> places_;
  SpscRing<QueuedRequest> news_;     ///< to who takes them; has room for all that can be told of each place
  SpscRing<std::uint32_t> answers_;  ///< and back: places

  // The host's.
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> waiting_;  ///< answered, and the endpoint had no memory
  bool told_ = false;                   ///< since the last turn

  // The taker's.
  bool armed_ = false;
  bool unsent_ = false;  ///< answered since the last flush()
};

}  // namespace warpline::rpc
