// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "warpline/message/loopback_testing.h"

namespace warpline::message {

/// Random traffic between two ends of a session, each message known by its code: what arrives is what was sent, no
/// handler runs twice, every call ends once.
class Traffic {
 public:
  struct Shape {
    std::uint32_t messages = 100;  ///< of each end
    std::uint32_t outstanding = 20;
    std::uint32_t max_length = 200'000;
    bool ordered = false;
    bool give_up = false;    ///< cancels and deadlines
    bool some_high = false;  ///< a third of the messages
  };

  Traffic(Loopback& net, std::uint64_t seed, Shape shape) : net_(net), random_(seed), shape_(shape) {}

  void add(Loopback::Host& host, SessionId session) {
    ends_.push_back(std::make_unique<End>(End{&host, session, {}, {}, {}, {}, 0, 0, 0, 0}));
    End& end = *ends_.back();
    host.handle = [this, &end](const MessageEvent& event) { return take(end, event); };
  }

  /// True if all messages ended within `limit` of virtual time.
  bool run(Nanos limit) {
    // A call that found no room is tried again with whatever happens next.
    return net_.run(
        [&] {
          for (auto& end : ends_) fill(*end);
          return done();
        },
        limit);
  }

  [[nodiscard]] bool done() const {
    if (broken_) return true;
    for (const auto& end : ends_) {
      if (end->begun != shape_.messages || !end->calls.empty() || !end->answers.empty()) return false;
    }
    return true;
  }

  /// Handled exactly once what succeeded, at most once the rest.
  void check() const {
    for (std::size_t e = 0; e < ends_.size(); ++e) {
      const End& end = *ends_[e];
      const End& peer = *ends_[1 - e];
      for (const auto& [code, status] : end.ended) {
        const auto handled = peer.handled.find(code);
        const std::uint32_t times = handled == peer.handled.end() ? 0 : handled->second;
        EXPECT_LE(times, 1U) << "message " << code;
        if (status == MessageStatus::ok) {
          EXPECT_EQ(times, 1U) << "message " << code;
        }
      }
      EXPECT_EQ(end.ended.size(), shape_.messages);
    }
  }

  [[nodiscard]] std::uint32_t ended(MessageStatus status) const {
    std::uint32_t count = 0;
    for (const auto& end : ends_) {
      for (const auto& [code, how] : end->ended) count += how == status ? 1 : 0;
    }
    return count;
  }

 private:
  struct Call {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint8_t> response;
    MessageId id;
    bool request = false;
  };
  struct End {
    Loopback::Host* host;
    SessionId session;
    std::map<std::uint16_t, Call> calls;
    std::map<std::uint16_t, std::vector<std::uint8_t>> answers;  ///< being sent, not copied
    std::map<std::uint16_t, MessageStatus> ended;
    std::map<std::uint16_t, std::uint32_t> handled;
    std::uint32_t begun = 0;
    std::uint16_t last_code = 0;
    std::uint32_t turn = 0;
    std::uint32_t refused = 0;
  };

  static std::uint32_t response_length(std::uint16_t code, std::uint32_t most) {
    const std::uint64_t hash = mix64(code + 9000U);
    return static_cast<std::uint32_t>(hash % 8 < 5 ? hash / 8 % 100 : hash / 8 % most);
  }

  void fill(End& end) {
    while (end.begun < shape_.messages && end.calls.size() < shape_.outstanding) {
      const auto code = static_cast<std::uint16_t>(end.begun + 1);
      const std::uint64_t kind = random_.below(20);
      const std::uint32_t most = kind < 10 ? 40 : kind < 15 ? 3000 : kind < 19 ? 20'000 : shape_.max_length;
      Call call;
      call.bytes = pattern(random_.below(std::min(most, shape_.max_length)), code);
      call.request = random_.below(3) != 0;
      call.response.resize(response_length(code, shape_.max_length));
      Call& kept = end.calls[code] = std::move(call);
      Submitted submitted;
      const ConstBuffer bytes{kept.bytes.data(), static_cast<std::uint32_t>(kept.bytes.size()), false};
      if (kept.request) {
        RequestOptions options;
        options.code = code;
        options.context = code;
        if (shape_.some_high && code % 3 == 0) options.priority = Priority::high;
        if (shape_.give_up && random_.below(10) == 0) {
          options.deadline = Nanos{net_.now.value + static_cast<std::int64_t>(random_.below(400'000))};
        }
        const MutableBuffer room{kept.response.data(), static_cast<std::uint32_t>(kept.response.size()), false};
        submitted = end.host->endpoint.request(end.session, bytes, room, options, net_.now);
      } else {
        SendOptions options;
        options.code = code;
        options.context = code;
        if (shape_.some_high && code % 3 == 0) options.priority = Priority::high;
        options.copy = random_.below(2) == 0;
        submitted = end.host->endpoint.send(end.session, bytes, options, net_.now);
      }
      if (submitted.status != CallStatus::ok) {
        end.calls.erase(code);
        EXPECT_TRUE(submitted.status == CallStatus::no_slot || submitted.status == CallStatus::no_memory)
            << name(submitted.status);
        broken_ |= submitted.status == CallStatus::unknown_session;
        ++end.refused;
        return;
      }
      kept.id = submitted.id;
      ++end.begun;
      if (shape_.give_up && random_.below(10) == 0) {
        EXPECT_EQ(end.host->endpoint.cancel(kept.id, net_.now), CallStatus::ok);
      }
    }
  }

  bool take(End& end, const MessageEvent& event) {
    switch (event.kind) {
      case EventKind::request:
      case EventKind::message: {
        EXPECT_EQ(std::vector<std::uint8_t>(event.data, event.data + event.length), pattern(event.length, event.code));
        ++end.handled[event.code];
        if (shape_.ordered) {
          EXPECT_GT(event.code, end.last_code);
          end.last_code = event.code;
        }
        if (event.kind == EventKind::message) {
          EXPECT_EQ(end.host->endpoint.release(event.id, net_.now), CallStatus::ok);
          return true;
        }
        auto& answer = end.answers[event.code] =
            pattern(response_length(event.code, shape_.max_length), event.code + 1U);
        SendOptions options;
        options.code = event.code;
        options.context = event.code;
        options.copy = ++end.turn % 2 == 0;
        const ConstBuffer bytes{answer.data(), static_cast<std::uint32_t>(answer.size()), false};
        CallStatus status = end.host->endpoint.respond(event.id, bytes, options, net_.now);
        if (options.copy && status == CallStatus::no_memory) {
          options.copy = false;
          status = end.host->endpoint.respond(event.id, bytes, options, net_.now);
        }
        EXPECT_EQ(status, CallStatus::ok);
        if (options.copy || answer.size() <= kInlineBytes) end.answers.erase(event.code);
        return true;
      }
      case EventKind::response: {
        const auto code = static_cast<std::uint16_t>(event.context);
        EXPECT_EQ(end.calls.count(code), 1U);
        if (event.status == MessageStatus::ok) {
          EXPECT_EQ(event.code, code);
          EXPECT_EQ(event.length, end.calls[code].response.size());
          EXPECT_EQ(end.calls[code].response, pattern(event.length, code + 1U));
        }
        end.ended[code] = event.status;
        end.calls.erase(code);
        fill(end);
        return true;
      }
      case EventKind::sent: {
        const auto code = static_cast<std::uint16_t>(event.context);
        if (event.id.incoming) {
          EXPECT_EQ(end.answers.erase(code), 1U);
          return true;
        }
        EXPECT_EQ(end.calls.count(code), 1U);
        end.ended[code] = event.status;
        end.calls.erase(code);
        fill(end);
        return true;
      }
      case EventKind::withdrawn:
        static_cast<void>(end.host->endpoint.release(event.id, net_.now));
        return true;
      case EventKind::lost:
        ADD_FAILURE() << "lost: " << name(event.reason) << " at " << net_.now.value;
        return true;
      default:
        return false;
    }
  }

  Loopback& net_;
  Random random_;
  Shape shape_;
  bool broken_ = false;  ///< the session is gone, which no network here may do
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace warpline::message
