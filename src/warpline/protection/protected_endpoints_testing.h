// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/packet/headers/message_header.h"
#include "warpline/protection/packet_protection.h"

namespace warpline::protection {

inline constexpr std::uint32_t kSessions = 8;

using Bytes8 = std::vector<std::uint8_t>;

struct Packet {
  bool from_client = false;
  Bytes8 bytes;
};

inline bool is_of_session(const Bytes8& bytes) {
  return packet::MessagePrefix::check(bytes.data(), static_cast<std::uint32_t>(bytes.size())) ==
             packet::MessageParse::ok &&
         packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session;
}

/// A client and a server, each with a key or none, and all session packets that they sent.
class Protected : public testing::Test {
 protected:
  void begin(const AesKey* client_key, const AesKey* server_key, message::Impairment impairment = {}) {
    begin(config(client_key, client_protection_), config(server_key, server_protection_), impairment);
  }

  /// With keys that may be replaced.
  void begin(std::shared_ptr<const Keys> client_keys, std::shared_ptr<const Keys> server_keys) {
    client_protection_ = *make_protection(std::move(client_keys), kSessions);
    server_protection_ = *make_protection(std::move(server_keys), kSessions);
    message::EndpointConfig client = config();
    client.protection = client_protection_.get();
    message::EndpointConfig server = config();
    server.protection = server_protection_.get();
    begin(client, server, {});
  }

  void begin(const message::EndpointConfig& client, const message::EndpointConfig& server,
             message::Impairment impairment) {
    net_ = std::make_unique<message::Loopback>(1, impairment);
    net_->whole = true;
    client_ = &net_->add(client);
    server_ = &net_->add(server);
    server_->handle = [this](const message::MessageEvent& event) {
      if (event.kind != message::EventKind::request) return false;
      seen_.insert(seen_.end(), event.data, event.data + event.length);
      message::SendOptions options;
      options.copy = true;
      return server_->endpoint.respond(event.id, {event.data, event.length}, options, net_->now) ==
             message::CallStatus::ok;
    };
    net_->tap = [this](const message::Loopback::Host& from, Bytes8& bytes) {
      if (is_of_session(bytes)) recorded_.push_back({&from == client_, bytes});
      return false;
    };
  }

  /// Asks once; the end of it.
  message::MessageEvent ask(message::SessionId session, const Bytes8& question, Bytes8& answer) {
    client_->events.clear();
    answer.assign(question.size(), 0);
    const message::ConstBuffer out{question.data(), static_cast<std::uint32_t>(question.size())};
    const message::MutableBuffer in{answer.data(), static_cast<std::uint32_t>(answer.size())};
    EXPECT_EQ(client_->endpoint.request(session, out, in, {}, net_->now).status, message::CallStatus::ok);
    const auto ended = [this] {
      return std::ranges::find(client_->events, message::EventKind::response, &message::MessageEvent::kind) !=
             client_->events.end();
    };
    EXPECT_TRUE(net_->run(ended));
    return *std::ranges::find(client_->events, message::EventKind::response, &message::MessageEvent::kind);
  }

  [[nodiscard]] std::uint64_t handled() const { return server_->endpoint.counters().handled.get(); }
  [[nodiscard]] static std::uint64_t dropped(const message::Loopback::Host& host) {
    std::uint64_t sum = 0;
    for (const Counter& counter : host.endpoint.counters().drops) sum += counter.get();
    return sum;
  }

  static message::EndpointConfig config() {
    message::EndpointConfig config;
    config.max_sessions = kSessions;
    config.max_messages = 512;  // one address has at most three quarters of them
    config.max_sent_packets = 4096;
    config.receive_bytes = 16U << 20;
    return config;
  }
  static message::EndpointConfig config(const AesKey* key, std::unique_ptr<message::PacketProtection>& protection) {
    message::EndpointConfig config = Protected::config();
    if (key != nullptr) protection = *make_protection(*key, kSessions);
    config.protection = protection.get();
    return config;
  }

  static constexpr AesKey kKey = {1, 2, 3};
  static constexpr AesKey kOtherKey = {1, 2, 4};

  // The endpoints, in net_, go before what protects them.
  std::unique_ptr<message::PacketProtection> client_protection_;
  std::unique_ptr<message::PacketProtection> server_protection_;
  std::unique_ptr<message::Loopback> net_;
  message::Loopback::Host* client_ = nullptr;
  message::Loopback::Host* server_ = nullptr;
  std::vector<Packet> recorded_;
  Bytes8 seen_;
};

}  // namespace warpline::protection
