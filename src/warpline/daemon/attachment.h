// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/client/area.h"
#include "warpline/daemon/settings.h"
#include "warpline/message/endpoint.h"

namespace warpline::daemon {

/// Who a client is, as the kernel says (SO_PEERCRED).
struct ClientCredentials {
  pid_t process = 0;
  uid_t user = 0;
};

/// What a client did. Written by the daemon's thread, read by any.
struct ClientCounters {
  Counter submitted;                 ///< requests that the endpoint took
  std::array<Counter, 6> completed;  ///< of these, by message::MessageStatus
  Counter turned_away;               ///< requests and one-way messages that could not be begun
  Counter sent;                      ///< one-way messages that ended, however
  Counter delivered;                 ///< requests and one-way messages of peers handed to it
  Counter answered;                  ///< requests
  Counter declined;                  ///< requests given back, by it or since it is gone
  Counter overflowed;                ///< requests and messages given back because too many waited for it
  Counter bytes_out;                 ///< payload that it gave
  Counter bytes_in;                  ///< payload that it got
  Counter sessions_opened;           ///< that it asked for
};

/// Why a client's rings are read no more.
enum class Misdeed : std::uint8_t {
  none,            ///< they are
  bad_ring,        ///< an index of a ring that is further than the ring is long
  bad_descriptor,  ///< a submission of something that there is not, is in use, or is too long
};
[[nodiscard]] std::string_view name(Misdeed misdeed);  ///< the enumerator, such as "bad_ring"

/// One client as the daemon sees it: the memory that they share, and beside it all that the daemon believes, where the
/// client cannot write. What comes out of the shared memory has been read once and is within its bounds.
///
/// Made and destroyed by the control thread, else the endpoint's thread's; credentials and counters are any thread's.
class Attachment {
 public:
  /// A call or one-way message of the client.
  struct Call {
    message::MessageId id{};
    std::uint64_t tag = 0;
    std::uint32_t session = 0;
    bool busy = false;
    bool one_way = false;
  };
  /// A request or one-way message of a peer.
  struct Request {
    enum class State : std::uint8_t {
      free,
      with_client,  ///< it has to answer or give back
      waiting,      ///< answered, and the endpoint had no memory for it
      answering,    ///< the answer is on its way, and is read from staging()
    };
    State state = State::free;
    bool one_way = false;
    std::uint16_t code = 0;    ///< of the answer
    std::uint32_t length = 0;  ///< of the answer
    message::MessageId id{};
  };
  /// A session of the client.
  struct Session {
    message::SessionId id{};
    std::uint64_t tag = 0;
    bool open = false;
    bool closing = false;
  };

  /// `socket`: the connection, which it owns from now on. Environment error: no memory or descriptor left.
  [[nodiscard]] static Result<std::unique_ptr<Attachment>> make(const ClientLimits& limits,
                                                                const ClientCredentials& credentials, int socket);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// Sends the welcome, with the area, which the daemon then keeps mapped only. False: the client is gone.
  bool welcome();

  // The rings.
  /// The next submission, whole and within the limits; nothing: there is none, or no room for what it may bring, or
  /// misdeed() says why no more will come.
  [[nodiscard]] std::optional<client::Submission> take();
  /// Whether take() would have something to look at.
  [[nodiscard]] bool has_submissions() const;
  /// Tells the client something. There is room, by what take() keeps.
  void publish(const client::AreaCompletion& completion);
  /// Shows it what was published and taken, and wakes it if it sleeps.
  void notify();
  void set_sleeping(bool sleeps);  ///< of the daemon
  [[nodiscard]] Misdeed misdeed() const { return misdeed_; }
  void tell_end(client::AreaEnd end);  ///< the last that the client reads
  /// Reads what has woken the daemon. False: the client has hung up.
  [[nodiscard]] bool read_socket();

  // Rooms. All are valid for every slot that there is.
  /// Copies a call's message out of reach of the client, who may change it still.
  [[nodiscard]] message::ConstBuffer stage_call(std::uint32_t slot, std::uint32_t length);
  [[nodiscard]] message::ConstBuffer stage_answer(std::uint32_t slot, std::uint32_t length);  ///< the same
  [[nodiscard]] message::ConstBuffer staged_answer(std::uint32_t slot, std::uint32_t length) const;
  [[nodiscard]] message::MutableBuffer response_room(std::uint32_t slot);  ///< shared: the endpoint writes there
  void deliver(std::uint32_t slot, std::span<const std::uint8_t> bytes);   ///< into the room of a request

  [[nodiscard]] const client::AreaFacts& facts() const { return facts_; }
  [[nodiscard]] const ClientCredentials& credentials() const { return credentials_; }
  [[nodiscard]] int socket() const { return socket_; }
  /// A descriptor that is readable once the client's process has ended; -1: the kernel offers none.
  [[nodiscard]] int process() const { return process_; }
  [[nodiscard]] std::span<std::uint8_t> memory() { return {area_, layout_.bytes}; }  ///< shared; for tests

  std::vector<Call> calls;
  std::vector<Request> requests;
  std::vector<Session> sessions;
  std::vector<std::uint32_t> free_requests;    ///< slots
  std::vector<message::MessageEvent> waiting;  ///< a ring of what found no slot; as many as there are slots
  std::uint32_t first_waiting = 0;             ///< place of the oldest
  std::uint32_t waiting_count = 0;
  std::uint32_t answers_waiting = 0;  ///< requests in the state `waiting`
  std::uint32_t next_answer = 0;      ///< slot from which the next turn looks for these
  bool listens = false;               ///< it has been given codes
  std::uint32_t under_way = 0;        ///< calls, sessions and answers whose ends the endpoint has to tell
  bool leaving = false;               ///< nothing is taken of it any more
  ClientCounters counters;
  std::atomic<std::uint8_t> expelled_for{0};  ///< a Misdeed, for reports
  Nanos attached_at{};                        ///< set by who attaches it

 private:
  Attachment(const ClientLimits& limits, const ClientCredentials& credentials, int socket);
  Result<void> map();
  void watch_process();
  [[nodiscard]] bool in_bounds(const client::Submission& submission) const;
  [[nodiscard]] std::uint8_t* staging(std::uint64_t room) { return staging_ + room * layout_.room_bytes; }
  /// Completions that the client has not read; nothing: it lies about that.
  [[nodiscard]] std::optional<std::uint32_t> unread() const;

  client::AreaFacts facts_;
  client::AreaLayout layout_;
  ClientCredentials credentials_;
  int socket_;
  int process_ = -1;
  int memory_ = -1;                  ///< the area's descriptor, until welcome()
  std::uint8_t* area_ = nullptr;     ///< shared
  std::uint8_t* staging_ = nullptr;  ///< the daemon's own: a room for each call and each answer
  client::AreaIndices* indices_ = nullptr;
  std::uint32_t submission_head_ = 0;
  std::uint32_t told_head_ = 0;  ///< as the client sees it
  std::uint32_t completion_tail_ = 0;
  std::uint32_t kept_ = 0;  ///< completions that what was begun may still bring, at most
  bool told_ = true;        ///< the indices in the area are as here
  bool wakes_ = false;      ///< what was not told yet is something to wake up for
  Misdeed misdeed_ = Misdeed::none;
};

}  // namespace warpline::daemon
