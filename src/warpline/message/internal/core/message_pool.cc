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

MessagePool::MessagePool(const EndpointConfig& config)
    : config_(config), messages_(config.max_messages), memory_(config.receive_bytes) {}

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
  give_in(message);
  give_out(message);
  ++message.generation;
  message.role = TransferRole::free;
  messages_.give(index);
}

bool MessagePool::take_in(Message& message, std::uint16_t code) {
  const std::uint32_t metadata = message.in_head == 0 ? 0 : message.in_head - packet::MessageFragment::kTimeLeft;
  const std::uint32_t data = message.in_length - message.in_head;
  if (data + metadata <= kInlineBytes) {
    message.in = message.bytes.data();
    message.in_metadata = message.in + data;
    return true;
  }
  if (data > kInlineBytes && config_.buffers.take != nullptr) {
    if (metadata != 0) {
      message.in_metadata = memory_.take(metadata);
      message.in_metadata_own = message.in_metadata != nullptr;
      if (!message.in_metadata_own) return false;
    }
    const SessionId id{message.session, message.session_generation};
    const MutableBuffer buffer = config_.buffers.take(config_.buffers.context, id, code, data);
    message.in = buffer.data;
    message.in_device = buffer.device;
    message.in_source = buffer.data != nullptr;
    if (!message.in_source) give_in(message);
    return message.in_source;
  }
  message.in = memory_.take(data + metadata);
  message.in_own_memory = message.in != nullptr;
  if (message.in_own_memory) message.in_metadata = message.in + data;
  return message.in_own_memory;
}

void MessagePool::give_in(Message& message) {
  if (message.in_own_memory) memory_.give(message.in);
  if (message.in_metadata_own) memory_.give(message.in_metadata);
  if (message.in_source) {
    config_.buffers.give(config_.buffers.context, {message.in, message.in_length - message.in_head, message.in_device});
  }
  message.in_own_memory = false;
  message.in_metadata_own = false;
  message.in_source = false;
  message.in = nullptr;
  message.in_metadata = nullptr;
}

void MessagePool::give_out(Message& message) {
  if (message.out_own_memory) memory_.give(const_cast<std::uint8_t*>(message.out));
  if (message.out_metadata_own) memory_.give(const_cast<std::uint8_t*>(message.out_metadata));
  message.out_own_memory = message.out_metadata_own = false;
}

CallStatus MessagePool::take_out(Message& message, ConstBuffer bytes, bool copy,
                                 std::span<const std::uint8_t> metadata) {
  const bool unreadable = bytes.device && config_.protection != nullptr && config_.placer.copy == nullptr;
  if (unreadable || (copy && bytes.device)) return CallStatus::not_allowed;
  message.out_length = bytes.length;
  const bool small = bytes.length <= kInlineBytes && !bytes.device;
  if (!metadata.empty()) {
    if (small && bytes.length + metadata.size() <= kInlineBytes) {
      // Either may be part of a request that lies there.
      std::array<std::uint8_t, kInlineBytes> both;
      std::copy_n(bytes.data, bytes.length, both.begin());
      std::copy(metadata.begin(), metadata.end(), both.begin() + bytes.length);
      std::copy_n(both.begin(), bytes.length + metadata.size(), message.bytes.begin());
      message.out = message.bytes.data();
      message.out_metadata = message.out + bytes.length;
      return CallStatus::ok;
    }
    const std::uint32_t before = small ? bytes.length : 0;  // there is no place in a message of several fragments
    std::uint8_t* const buffer = memory_.take(before + metadata.size());
    if (buffer == nullptr) return CallStatus::no_memory;
    std::copy_n(bytes.data, before, buffer);
    std::copy(metadata.begin(), metadata.end(), buffer + before);
    message.out_metadata = buffer + before;
    (small ? message.out_own_memory : message.out_metadata_own) = true;
    if (small) {
      message.out = buffer;
      return CallStatus::ok;
    }
  }
  if (small) {
    if (bytes.length != 0) std::memmove(message.bytes.data(), bytes.data, bytes.length);
    message.out = message.bytes.data();
    return CallStatus::ok;
  }
  message.out = bytes.data;
  message.out_device = bytes.device;
  if (copy) {
    std::uint8_t* buffer = memory_.take(bytes.length);
    if (buffer == nullptr) {
      give_out(message);
      return CallStatus::no_memory;
    }
    std::memcpy(buffer, bytes.data, bytes.length);
    message.out = buffer;
    message.out_own_memory = true;
  }
  return CallStatus::ok;
}

bool MessagePool::has_to_spare(std::uint32_t length) const {
  if (messages_.available() <= messages_.capacity() / 8) return false;
  if (length <= kInlineBytes || config_.buffers.take != nullptr) return true;
  return memory_.free_bytes() >= std::uint64_t{length} * 2 + config_.max_message_bytes;
}

}  // namespace warpline::message
