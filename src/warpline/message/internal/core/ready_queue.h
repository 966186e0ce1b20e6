// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/message/internal/core/session_table.h"
#include "warpline/message/internal/parts/sent_packets.h"

namespace warpline::message {

/// Which session sends next: those with work stand in a queue, the others cost nothing. Those with messages that are
/// high stand in another one before it, of whose turns one in kPriorityTurns goes to the others. Those that found no
/// block of sent packets wait for one, those that owe nothing but an acknowledgement until it is due.
class ReadyQueue {
 public:
  ReadyQueue(SessionTable& sessions, const SentBlocks& blocks)
      : blocks_(blocks), ready_(sessions), urgent_(sessions), starved_(sessions), acks_(sessions) {}

  /// Stands the session at the end of its queue, unless it is in it.
  void add(Session& session) {
    if (has_high(session)) [[unlikely]]
      return urgent_.add(session);
    ready_.add(session);
  }
  [[nodiscard]] bool empty() const { return ready_.empty() && urgent_.empty(); }
  /// Whether it is the turn of a session for what it has that is high. One of the queues is not empty.
  [[nodiscard]] bool urgent_turn() const {
    return !urgent_.empty() && (ready_.empty() || urgent_taken_ < kPriorityTurns - 1);
  }
  /// The session whose turn that is.
  Session& take_urgent() {
    urgent_taken_ = ready_.empty() ? 0 : urgent_taken_ + 1;
    return urgent_.take();
  }
  /// The session whose turn it is otherwise. Fetches the next one.
  Session& take() {
    urgent_taken_ = 0;
    Session& session = ready_.take();
    if (!ready_.empty()) prefetch(ready_.front());
    return session;
  }

  /// The session found no block: it is ready again when there are more free than now.
  void starve(Session& session) {
    wake_starved();  // this one may have freed what others need
    blocks_when_starved_ = blocks_.available();
    starved_.add(session);
  }
  /// Makes ready what waits for blocks, if there are more by now.
  void wake_starved() {
    if (!has_new_blocks()) return;
    while (!starved_.empty()) add(starved_.take());
  }

  /// The session acknowledges at `ack_at` what it has not by then. All wait equally long: the first is due first.
  void owe_acknowledgement(Session& session, Nanos ack_at) {
    if (session.ack_listed) return;
    session.ack_at = ack_at;
    acks_.add(session);
  }

  /// Before sessions are taken: makes ready what is due by now.
  void wake(Nanos now) {
    while (!acks_.empty() && acks_.front().ack_at <= now) {
      Session& session = acks_.take();
      if (session.unacknowledged == 0) continue;  // also if the session has ended
      session.ack_now = true;
      add(session);
    }
    blocks_when_starved_ = std::min(blocks_when_starved_, blocks_.available());
    wake_starved();
  }

  /// Whether wake() would find a session to be taken at once, acknowledgements aside.
  [[nodiscard]] bool has_any() const { return !empty() || has_new_blocks(); }
  /// When the first acknowledgement is due; kNever if none is owed.
  [[nodiscard]] Nanos next_acknowledgement() {
    while (!acks_.empty() && acks_.front().unacknowledged == 0) acks_.take();
    return acks_.empty() ? kNever : acks_.front().ack_at;
  }

 private:
  [[nodiscard]] bool has_new_blocks() const { return !starved_.empty() && blocks_.available() > blocks_when_starved_; }

  const SentBlocks& blocks_;
  SessionQueue<&Session::ready_next, &Session::ready> ready_;
  SessionQueue<&Session::urgent_next, &Session::urgent> urgent_;
  SessionQueue<&Session::starved_next, &Session::starved_listed> starved_;
  SessionQueue<&Session::ack_next, &Session::ack_listed> acks_;
  std::uint32_t urgent_taken_ = 0;         ///< in a row, while others were ready
  std::uint32_t blocks_when_starved_ = 0;  ///< free then: with more of them it is worth another try
};

}  // namespace warpline::message
