// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/pool/back_off.h"
#include "warpline/service/hasher.h"
#include "warpline/service/pattern.h"
#include "warpline/service/request_pacer.h"
#include "warpline/service/totals.h"

namespace warpline::service {

/// Where the long messages of one worker lie if not in memory of its own: cut from `pattern`, received into `room`. For
/// a server `room` is what its endpoint's BufferSource gives out.
struct MessageStore {
  const MessagePattern* pattern = nullptr;  ///< there; bytes as of the pattern in host memory
  std::span<std::uint8_t> room;
  bool device = false;              ///< both are where the CPU does not reach
  MessageHasher* hasher = nullptr;  ///< looks at both
};

/// What is done with an endpoint: the server's or the client's part. All calls by the endpoint's thread.
class MessageApp {
 public:
  virtual ~MessageApp() = default;
  virtual void begin(message::Endpoint& endpoint, Nanos now) = 0;
  virtual void handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) = 0;
  /// Once a turn of the loop, after the events. False when all is done.
  virtual bool turn(message::Endpoint& endpoint, Nanos now) = 0;
  /// next_turn is when it has something to do by itself, on the clock of turn(); the loop may sleep until then.
  [[nodiscard]] virtual Nanos next_turn() const { return Nanos{std::numeric_limits<std::int64_t>::max()}; }
  /// Something arrived.
  void note_heard(Nanos now) { heard_ = now; }

  [[nodiscard]] const MessageTally& tally() const { return tally_; }

 protected:
  MessageTally tally_;
  Nanos heard_;
};

/// Answers whatever clients of this program ask.
class MessageServer final : public MessageApp {
 public:
  /// `pattern`: for responses of up to `longest` bytes.
  MessageServer(const MessagePattern& pattern, std::uint32_t longest, const message::EndpointConfig& endpoint,
                const std::atomic<bool>& stop, MessageStore store = {});

  void begin(message::Endpoint&, Nanos) override {}
  void handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  bool turn(message::Endpoint& endpoint, Nanos now) override;

 private:
  struct Answer {
    message::MessageId request;
    message::ConstBuffer bytes;
    std::uint16_t code = kServed;
    std::uint64_t hash = 0;  ///< if `bytes` has none but a length: this
  };
  void serve(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  bool give(message::Endpoint& endpoint, const Answer& answer, Nanos now);
  [[nodiscard]] std::optional<std::uint64_t> hash_of(const message::MessageEvent& event);

  const MessagePattern& pattern_;
  MessageStore store_;
  std::uint32_t longest_;
  const std::atomic<bool>& stop_;
  std::vector<Answer> waiting_;  ///< for memory
  bool draining_ = false;
};

/// Asks servers as the tests say, and compares what comes back.
class MessageClient final : public MessageApp {
 public:
  struct Plan {
    MessageService service = MessageService::echo;
    std::uint32_t length = 0;                 ///< of requests; of responses where `service` is source
    std::uint32_t outstanding = 1;            ///< requests in flight of each session
    std::vector<message::PeerAddress> peers;  ///< one a session
    std::uint32_t first_session = 0;          ///< number of the first, among all workers'
    std::uint64_t requests = 0;               ///< to be made; 0: no bound
    double rate = 0;                          ///< requests per second, whatever becomes of them; 0: one follows another
    bool rounds = false;                      ///< no request before all of the round before have ended
    message::Priority priority = message::Priority::normal;
    bool verify = false;
    bool reconnect = false;  ///< sessions that are lost are opened again, after waits that double until one is answered
    rpc::BackOff back_off{.first = Nanos{10'000'000}, .longest = Nanos{1'000'000'000}};  ///< those waits
    std::uint64_t seed = 1;  ///< of the waits: not the same for clients of one server, that they do not come in step
    Nanos drain{2'000'000'000};  ///< that answers are waited for after the stop
  };

  /// With a `store` its room is for the responses: `outstanding` of each session, rounded up to kAlignment.
  MessageClient(Plan plan, const MessagePattern& pattern, const std::atomic<bool>& stop, MessageStore store = {});
  static constexpr std::uint32_t kAlignment = 256;

  void begin(message::Endpoint& endpoint, Nanos now) override;
  void handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  bool turn(message::Endpoint& endpoint, Nanos now) override;
  [[nodiscard]] Nanos next_turn() const override;

  /// False once every session is lost for good.
  [[nodiscard]] bool alive() const { return sessions_alive_.load(std::memory_order_relaxed) != 0; }
  /// Sessions that no server has accepted, though they were opened.
  [[nodiscard]] std::uint32_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    Nanos begun;
    std::uint64_t sequence = 0;
    std::uint32_t session = 0;
    bool busy = false;
    bool idle = false;  ///< among `idle_`
    message::MessageId id;
    std::vector<std::uint8_t> own;
    message::MutableBuffer response;
  };
  struct Session {
    message::SessionId id;
    bool up = false;
    bool was_up = false;
    bool refused = false;      ///< ended before it was up, each time
    bool gone = false;         ///< lost, and not opened again
    std::uint32_t losses = 0;  ///< since it was answered last
    std::uint32_t failed = 0;  ///< requests that ended as peer_lost since the session was up
  };

  void fill(message::Endpoint& endpoint, std::uint32_t session, Nanos now);
  void rest(std::uint32_t slot);
  void ask_what_is_due(message::Endpoint& endpoint, Nanos now);
  bool ask(message::Endpoint& endpoint, std::uint32_t slot, Nanos now);
  void answered(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  [[nodiscard]] bool right(const Slot& slot, const message::MessageEvent& event) const;
  [[nodiscard]] bool same(const message::MutableBuffer& response, const std::uint8_t* expected) const;
  /// A session that waits to be opened again.
  struct Waiting {
    Nanos until;
    std::uint32_t session = 0;
    bool operator>(const Waiting& other) const { return until > other.until; }
  };
  void reconnect_later(std::uint32_t session, Nanos now);
  void reconnect_what_is_due(message::Endpoint& endpoint, Nanos now);
  void give_up(Session& session);
  void session_lost(const message::MessageEvent& event, Nanos now);
  [[nodiscard]] bool may_ask() const { return !stopping_ && (plan_.requests == 0 || next_sequence_ < plan_.requests); }
  void begin_round(message::Endpoint& endpoint, Nanos now);

  Plan plan_;
  const MessagePattern& pattern_;
  MessageStore store_;
  const std::atomic<bool>& stop_;
  std::vector<Session> sessions_;
  std::vector<Slot> slots_;             ///< `outstanding` of each session in a row
  std::vector<std::uint32_t> waiting_;  ///< slots that found no memory
  RequestPacer pacer_;                  ///< with a rate only
  std::vector<std::uint32_t> idle_;     ///< with a rate: a ring of slots that wait for the next request, oldest first
  std::size_t first_idle_ = 0;
  std::size_t idle_count_ = 0;
  std::vector<Waiting> down_;  ///< a heap: the first one's time comes first
  Random random_;
  std::uint64_t next_sequence_ = 0;
  std::uint32_t busy_ = 0;  ///< slots
  Nanos round_begun_;
  Nanos turned_;  ///< the last turn of the loop
  bool stopping_ = false;
  Nanos stopped_at_;
  bool cancelled_ = false;
  std::atomic<std::uint32_t> sessions_alive_{0};
  std::atomic<std::uint32_t> refused_{0};
};

}  // namespace warpline::service
