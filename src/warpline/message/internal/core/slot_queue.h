// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/message/config.h"
#include "warpline/message/internal/core/message_pool.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// Own messages that wait for a slot of their session, each session's in the order of their submission, those that are
/// high before the others, which get one of kPriorityTurns nevertheless. All together
/// are at most EndpointConfig::max_queued and half of max_messages: peers' messages find places beside them.
class SlotQueue {
 public:
  SlotQueue(const EndpointConfig& config, MessagePool& messages)
      : messages_(messages), most_(std::min(config.max_queued, config.max_messages / 2)) {}

  [[nodiscard]] bool full() const { return size_ >= most_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  /// The message waits, behind those of its session that do already. The queue is not full.
  void add(Session& session, std::uint32_t index) {
    messages_[index].state = MessageState::queued;
    append(messages_, messages_[index].has(packet::MessageFragment::kHigh) ? session.high_queued : session.queued,
           index);
    ++size_;
  }
  /// The session's next one waits no more; there is one.
  std::uint32_t take(Session& session) {
    const bool others = session.queued.first != kNone;
    const bool high = session.high_queued.first != kNone && !(others && session.high_begun == kPriorityTurns - 1);
    session.high_begun = high && others ? (session.high_begun + 1) % kPriorityTurns : 0;
    MessageList& list = high ? session.high_queued : session.queued;
    const std::uint32_t index = list.first;
    list.first = messages_[index].send_next;
    if (list.first == kNone) list.last = kNone;
    --size_;
    return index;
  }
  /// Those of the session that `leaves(index)` says wait no more.
  template <typename Leaves>
  void remove_if(Session& session, Leaves&& leaves) {
    for (MessageList* list : {&session.high_queued, &session.queued}) {
      MessageList left;
      for (std::uint32_t index = list->first; index != kNone;) {
        const std::uint32_t next = messages_[index].send_next;
        if (leaves(index)) {
          --size_;
        } else {
          append(messages_, left, index);
        }
        index = next;
      }
      *list = left;
    }
  }

 private:
  MessagePool& messages_;
  std::uint32_t most_;
  std::uint32_t size_ = 0;
};

}  // namespace warpline::message
