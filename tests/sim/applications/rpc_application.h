// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/applications/application.h"
#include "sim/applications/stream_part.h"
#include "sim/ledger.h"
#include "warpline/base/random.h"
#include "warpline/message/types.h"

namespace warpline::sim {

/// What a host of a scenario does with its messages. Probabilities, lengths in bytes, times in nanoseconds.
struct RpcPlan {
  std::vector<std::uint32_t> peers;  ///< it opens a session to each
  std::uint32_t messages = 100;      ///< that it sends, besides nested ones
  std::uint32_t at_once = 8;         ///< under way
  std::uint32_t longest = 10'000;
  std::uint32_t longest_taken = 1 << 20;  ///< by any peer
  std::int64_t pause = 0;                 ///< at most, between messages
  double ordered = 0.3;                   ///< of the sessions
  double one_way = 0.2;
  double nested = 0.05;
  double later = 0.2;
  double echo = 0.2;
  double declined = 0.02;
  double copied = 0.2;
  double deadline = 0.05;
  double cancel = 0.05;
  double no_room = 0.03;  ///< for the answer
  double late_release = 0.2;
  double far_too_long = 0.01;
  double in_endpoint = 0;  ///< of the answers, that the endpoint has the memory for
  double metadata = 0;     ///< of messages and answers, with some
  double high = 0;         ///< of the priority, messages and answers
  StreamPlan streams = {};
};

/// Sends requests and one-way messages over its own sessions and those of others, answers at once, later, after asking
/// somebody else, or with what it got; and writes all that it sees into the ledger. Memory that it lent to the endpoint
/// is overwritten and freed as soon as the endpoint said that it may be.
class RpcApplication final : public Application {
 public:
  RpcApplication(const RpcPlan& plan, Ledger& ledger, StreamLedger& calls, std::uint64_t seed)
      : plan_(plan),
        ledger_(ledger),
        streams_(plan.streams, ledger, calls, mix64(~seed)),
        random_(seed),
        priorities_(mix64(seed ^ 1)),
        more_(mix64(seed)),
        left_(plan.messages) {}

  void start(Host& host) override;
  void handle(const message::MessageEvent& event) override;
  void wake(std::uint64_t what) override;
  bool work() override;
  [[nodiscard]] Nanos next_deadline() const override { return streams_.next_deadline(); }
  [[nodiscard]] bool may_end() const override { return answers_.empty() && kept_.empty(); }
  void crash() override;

  /// Nothing to send, to be answered or to answer.
  [[nodiscard]] bool done() const {
    return left_ == 0 && open_.empty() && answers_.empty() && kept_.empty() && streams_.done();
  }
  void check() { streams_.check(); }
  [[nodiscard]] std::string state() const;
  /// Closes the own sessions, for good.
  void close();
  /// Gives up what close() left for a reconnect.
  void forget();
  [[nodiscard]] std::size_t living_sessions() const;

 private:
  /// Memory that is the endpoint's for a while.
  struct Lent {
    std::unique_ptr<std::uint8_t[]> data;
    std::uint32_t length = 0;
    explicit Lent(std::uint32_t bytes = 0);
    Lent(Lent&&) = default;
    Lent& operator=(Lent&&) = default;
    ~Lent();
  };
  struct Session {
    message::SessionId id = {};
    std::uint32_t peer = 0;
    bool own = false;
    bool ordered = false;
    bool alive = true;
    std::uint32_t open = 0;     ///< messages of ours
    std::int32_t handled = -1;  ///< code of the last one of the peer
  };
  struct Open {
    message::MessageId id = {};
    std::uint32_t session = 0;  ///< index
    Lent message = Lent();
    Lent answer = Lent();
    std::uint32_t parent = 0;  ///< the answer that waits for it; 0: none
  };
  struct Answer {
    message::MessageId request = {};
    std::uint32_t from = 0;
    std::uint16_t code = 0;
    const std::uint8_t* data = nullptr;  ///< of the request
    std::uint32_t length = 0;
    std::uint32_t answer_length = 0;
    std::uint32_t answer_metadata = 0;
    AnswerKind kind = AnswerKind::at_once;
    bool given = false;  ///< waits for `sent`
    Lent bytes = Lent();
  };
  struct Kept {
    message::MessageId id = {};
    std::uint32_t from = 0;
    std::uint16_t code = 0;
    const std::uint8_t* data = nullptr;
    std::uint32_t length = 0;
    bool answer = false;  ///< an answer to `from`, in the endpoint's memory
  };

  void connect(std::uint32_t peer);
  void send_some();
  /// False: later.
  bool send_one(std::uint32_t session, std::uint32_t parent);
  Sent draw(std::uint32_t session, bool nested);
  message::Priority any_priority();
  void got_request(const message::MessageEvent& event);
  void got_message(const message::MessageEvent& event);
  void ended(const message::MessageEvent& event);
  void answer(std::uint32_t number);
  void keep(const Kept& kept);
  void give_back(std::uint32_t number);
  void lost(const message::MessageEvent& event);
  void reconnect(std::uint32_t session);
  void cannot(std::string_view what, std::uint16_t code, std::uint32_t of, message::CallStatus status);
  void check_order(const message::MessageEvent& event);
  Session* find(message::SessionId id);
  void wake_in(std::int64_t nanos, std::uint64_t kind, std::uint64_t number);

  RpcPlan plan_;
  Ledger& ledger_;
  StreamPart streams_;
  Random random_;
  Random priorities_;
  Random more_;  ///< what was added since: by numbers of its own, so that a seed is still what it was
  Host* host_ = nullptr;
  std::uint32_t left_;
  std::uint32_t next_number_ = 1;
  bool sending_later_ = false;
  bool closing_ = false;
  std::vector<Session> sessions_;
  std::map<std::uint16_t, Open> open_;       ///< by code
  std::map<std::uint32_t, Answer> answers_;  ///< by number
  std::map<std::uint32_t, Kept> kept_;       ///< one-way messages and answers to be given back, by number
};

}  // namespace warpline::sim
