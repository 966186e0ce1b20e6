// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "warpline/base/large_vector.h"
#include "warpline/message/config.h"
#include "warpline/message/internal/core/message.h"
#include "warpline/message/internal/core/peer_groups.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/receive_memory.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// All messages under way and the memory that holds their bytes, where the application's does not. Whatever memory a
/// message was given is given back with it, if not before; meanwhile that of peers' messages counts in PeerGroups. A
/// message's generation makes ids of its predecessors unknown.
class MessagePool {
 public:
  /// `config` and `groups` outlive this.
  MessagePool(const EndpointConfig& config, PeerGroups& groups);

  [[nodiscard]] Message& operator[](std::uint32_t index) { return messages_[index]; }
  [[nodiscard]] const Message& operator[](std::uint32_t index) const { return messages_[index]; }
  [[nodiscard]] std::uint32_t capacity() const { return messages_.capacity(); }
  [[nodiscard]] std::uint32_t available() const { return messages_.available(); }
  [[nodiscard]] std::uint64_t free_bytes() const { return memory_.free_bytes(); }

  [[nodiscard]] MessageHead& head_of(const Message& message) { return heads_[messages_.index_of(message)]; }

  /// The message that the application names; nullptr if it is gone.
  [[nodiscard]] Message* find(const MessageId& id);

  /// A new message of a session; kNone if there is none left.
  [[nodiscard]] std::uint32_t take(TransferRole role, SessionId session, std::uint32_t epoch);
  void give(std::uint32_t index);

  /// Memory for a message of Message::in_length and in_head that comes, of the application's `code`, where its session
  /// says. False if there is none.
  [[nodiscard]] bool take_in(Message& message, std::uint16_t code);
  void give_in(Message& message) {
    if ((message.owned & kOwnsAnyIn) != 0) [[unlikely]]
      give_owned_in(message);
    message.in = nullptr;
  }
  /// Takes over the bytes to be sent: into the message, into memory of this pool, or where they are. `no_memory`: none
  /// is free, or the peer's address has its share.
  [[nodiscard]] CallStatus take_out(Message& message, ConstBuffer bytes, bool copy);
  /// The same, with metadata, of which there is some.
  [[nodiscard]] CallStatus take_out(Message& message, ConstBuffer bytes, bool copy,
                                    std::span<const std::uint8_t> metadata);

  /// Returns whether the receive memory, when all of it is free, has room for a message of `length` bytes.
  [[nodiscard]] bool can_hold(std::uint32_t length) const {
    return length <= kInlineBytes || config_.buffers.take != nullptr ||
           ReceiveMemory::block_bytes(length) <= std::bit_floor(memory_.capacity());
  }
  /// Whether a message of `length` bytes that comes before its turn may have memory: messages whose turn it is must
  /// find some, since it is for them that all the others wait.
  [[nodiscard]] bool has_to_spare(std::uint32_t length) const;
  /// Returns whether so little receive memory is taken that anybody's share allows a message of this length.
  [[nodiscard]] bool has_plenty(std::uint32_t length) const {
    const std::uint64_t free = memory_.free_bytes();
    return PeerGroups::anybody_may_have(memory_.capacity() - free, ReceiveMemory::block_bytes(length), free);
  }

 private:
  /// Receive memory for a message; nullptr if there is none.
  [[nodiscard]] std::uint8_t* take_memory(const Message& message, std::uint64_t length);
  /// The same for what is to be sent, as far as the share of the peer's address allows.
  [[nodiscard]] std::uint8_t* take_share(const Message& message, std::uint64_t length);
  void give_memory(const Message& message, std::uint8_t* buffer);
  [[nodiscard]] bool take_in_with_head(Message& message, std::uint16_t code);
  [[nodiscard]] bool take_in_memory(Message& message, std::uint32_t length);
  [[nodiscard]] bool take_in_source(Message& message, std::uint16_t code, std::uint32_t length);
  [[gnu::noinline]] void give_owned(Message& message);
  void give_owned_in(Message& message);
  void give_owned_out(Message& message);

  const EndpointConfig& config_;
  PeerGroups& groups_;
  IndexPool<Message> messages_;
  LargeVector<MessageHead> heads_;  ///< of messages, by index
  ReceiveMemory memory_;
  /// For responses that find none there. Two ends that ask each other may both fill it with requests, which they keep
  /// until the other has taken the response: so some of their responses must always find a place.
  ReceiveMemory response_memory_;
};

/// First in, first out, of messages linked by send_next; the list lies in their session.
inline void append(MessagePool& messages, MessageList& list, std::uint32_t index) {
  messages[index].send_next = kNone;
  (list.last == kNone ? list.first : messages[list.last].send_next) = index;
  list.last = index;
}

}  // namespace warpline::message
