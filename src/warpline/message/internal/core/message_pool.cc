// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/message_pool.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

/// A copy of it is a few moves; GCC makes a `rep stos` of an initializer.
constexpr MessageFields kNewMessage{};

}  // namespace

MessagePool::MessagePool(const EndpointConfig& config, PeerGroups& groups)
    : config_(config),
      groups_(groups),
      messages_(config.max_messages),
      heads_(config.max_messages),
      memory_(config.receive_bytes),
      response_memory_(ReceiveMemory::block_bytes(std::uint64_t{config.max_message_bytes} + kMaxMetadataBytes)) {}

Message* MessagePool::find(const MessageId& id) {
  if (id.index >= messages_.capacity()) return nullptr;
  Message& message = messages_[id.index];
  return message.role != TransferRole::free && message.generation == id.generation ? &message : nullptr;
}

std::uint32_t MessagePool::take(TransferRole role, SessionId session, std::uint32_t epoch) {
  const std::uint32_t index = messages_.take();
  if (index == kNone) return kNone;
  Message& message = messages_[index];
  static_cast<MessageFields&>(message) = kNewMessage;
  message.role = role;
  message.session = session.index;
  message.session_generation = session.generation;
  message.epoch = epoch;
  return index;
}

void MessagePool::give(std::uint32_t index) {
  Message& message = messages_[index];
  if (message.owned != 0) give_owned(message);
  ++message.generation;
  message.role = TransferRole::free;
  messages_.give(index);
}

std::uint8_t* MessagePool::take_memory(const Message& message, std::uint64_t length) {
  std::uint8_t* const buffer = memory_.take(length);
  if (buffer != nullptr && message.group != kNone) groups_.charge(message.group, ReceiveMemory::block_bytes(length));
  return buffer;
}

std::uint8_t* MessagePool::take_share(const Message& message, std::uint64_t length) {
  const std::uint64_t block = ReceiveMemory::block_bytes(length);
  const bool may = message.group == kNone ||
                   groups_.may_have(message.group, block, 0, memory_.free_bytes()) == PeerGroups::Share::allows;
  return may ? take_memory(message, length) : nullptr;
}

void MessagePool::give_memory(const Message& message, std::uint8_t* buffer) {
  const std::uint64_t bytes = memory_.give(buffer);
  if (message.group != kNone) groups_.refund(message.group, bytes);
}

bool MessagePool::take_in(Message& message, std::uint16_t code) {
  if (message.in_head != 0) [[unlikely]]
    return take_in_with_head(message, code);
  if (message.in_length <= kInlineBytes) {
    message.in = message.bytes.data();
    return true;
  }
  return config_.buffers.take != nullptr ? take_in_source(message, code, message.in_length)
                                         : take_in_memory(message, message.in_length);
}

bool MessagePool::take_in_with_head(Message& message, std::uint16_t code) {
  MessageHead& head = head_of(message);
  head.in_metadata = nullptr;
  head.expires = kNever;
  const std::uint32_t metadata = message.in_head - packet::MessageFragment::kTimeLeft;
  const std::uint32_t data = message.in_length - message.in_head;
  if (data > kInlineBytes && config_.buffers.take != nullptr) {
    if (metadata != 0) {
      head.in_metadata = take_memory(message, metadata);
      if (head.in_metadata == nullptr) return false;
      message.owned |= kOwnsInMetadata;
    }
    if (take_in_source(message, code, data)) return true;
    give_in(message);
    return false;
  }
  if (data + metadata <= kInlineBytes) {
    message.in = message.bytes.data();
  } else if (!take_in_memory(message, data + metadata)) {
    return false;
  }
  head.in_metadata = message.in + data;
  return true;
}

bool MessagePool::take_in_memory(Message& message, std::uint32_t length) {
  message.in = take_memory(message, length);
  if (message.in == nullptr && message.role == TransferRole::own_request) message.in = response_memory_.take(length);
  if (message.in == nullptr) return false;
  message.owned |= kOwnsIn;
  return true;
}

bool MessagePool::take_in_source(Message& message, std::uint16_t code, std::uint32_t length) {
  const SessionId id{message.session, message.session_generation};
  const MutableBuffer buffer = config_.buffers.take(config_.buffers.context, id, code, length);
  message.in = buffer.data;
  message.in_device = buffer.device;
  if (buffer.data == nullptr) return false;
  message.owned |= kOwnsInSource;
  return true;
}

void MessagePool::give_owned(Message& message) {
  give_owned_in(message);
  give_owned_out(message);
}

void MessagePool::give_owned_in(Message& message) {
  if ((message.owned & kOwnsIn) != 0) {
    if (response_memory_.holds(message.in)) {
      response_memory_.give(message.in);
    } else {
      give_memory(message, message.in);
    }
  }
  if ((message.owned & kOwnsInMetadata) != 0) give_memory(message, head_of(message).in_metadata);
  if ((message.owned & kOwnsInSource) != 0) {
    config_.buffers.give(config_.buffers.context, {message.in, message.in_length - message.in_head, message.in_device});
  }
  message.owned &= static_cast<std::uint8_t>(~kOwnsAnyIn);
}

void MessagePool::give_owned_out(Message& message) {
  if ((message.owned & kOwnsOut) != 0) give_memory(message, const_cast<std::uint8_t*>(message.out));
  if ((message.owned & kOwnsOutMetadata) != 0)
    give_memory(message, const_cast<std::uint8_t*>(head_of(message).out_metadata));
  message.owned &= kOwnsAnyIn;
}

CallStatus MessagePool::take_out(Message& message, ConstBuffer bytes, bool copy) {
  const bool unreadable = bytes.device && config_.protection != nullptr && config_.placer.copy == nullptr;
  if (unreadable || (copy && bytes.device)) return CallStatus::not_allowed;
  message.out_length = bytes.length;
  if (bytes.length <= kInlineBytes && !bytes.device) {
    if (bytes.length != 0) std::memmove(message.bytes.data(), bytes.data, bytes.length);
    message.out = message.bytes.data();
    return CallStatus::ok;
  }
  message.out = bytes.data;
  message.out_device = bytes.device;
  if (copy) {
    std::uint8_t* const buffer = take_share(message, bytes.length);
    if (buffer == nullptr) return CallStatus::no_memory;
    std::memcpy(buffer, bytes.data, bytes.length);
    message.out = buffer;
    message.owned |= kOwnsOut;
  }
  return CallStatus::ok;
}

CallStatus MessagePool::take_out(Message& message, ConstBuffer bytes, bool copy,
                                 std::span<const std::uint8_t> metadata) {
  MessageHead& head = head_of(message);
  const bool small = bytes.length <= kInlineBytes && !bytes.device;
  if (small && bytes.length + metadata.size() <= kInlineBytes) {
    // Either may be part of a request that lies there.
    std::array<std::uint8_t, kInlineBytes> both;
    std::copy_n(bytes.data, bytes.length, both.begin());
    std::copy(metadata.begin(), metadata.end(), both.begin() + bytes.length);
    std::copy_n(both.begin(), bytes.length + metadata.size(), message.bytes.begin());
    message.out = message.bytes.data();
    message.out_length = bytes.length;
    head.out_metadata = message.out + bytes.length;
    return CallStatus::ok;
  }
  const std::uint32_t before = small ? bytes.length : 0;  // there is no place in a message of several fragments
  std::uint8_t* const buffer = take_share(message, before + metadata.size());
  if (buffer == nullptr) return CallStatus::no_memory;
  std::copy_n(bytes.data, before, buffer);
  std::copy(metadata.begin(), metadata.end(), buffer + before);
  head.out_metadata = buffer + before;
  if (small) {
    message.out = buffer;
    message.out_length = bytes.length;
    message.owned |= kOwnsOut;
    return CallStatus::ok;
  }
  message.owned |= kOwnsOutMetadata;
  const CallStatus status = take_out(message, bytes, copy);
  if (status != CallStatus::ok) give_owned_out(message);
  return status;
}

bool MessagePool::has_to_spare(std::uint32_t length) const {
  if (messages_.available() <= messages_.capacity() / 8) return false;
  if (length <= kInlineBytes || config_.buffers.take != nullptr) return true;
  return memory_.free_bytes() >= std::uint64_t{length} * 2 + config_.max_message_bytes;
}

}  // namespace warpline::message
