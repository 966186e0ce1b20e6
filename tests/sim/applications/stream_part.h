// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/ledger.h"
#include "warpline/base/random.h"
#include "warpline/rpc/streams/call_streams.h"

namespace warpline::sim {

class Host;

/// What a host does with calls in pieces. Probabilities, lengths in bytes.
struct StreamPlan {
  std::uint32_t calls = 0;  ///< that it opens; 0, at all hosts: there are none
  std::uint32_t places = 4;
  std::uint32_t window = 40'960;
  std::uint32_t pieces = 60;  ///< most of one way
  std::uint32_t longest = 3'000;
  std::uint32_t at_once = 2;  ///< of a host's own
  std::uint32_t pace = 8;     ///< most pieces that are read in a turn
  double deadline = 0.1;
  double cancel = 0.1;
};

/// A call in pieces as its opener meant it, and what became of it.
struct SentStream {
  /// What who takes it does.
  enum class Manner : std::uint8_t {
    answers_all,    ///< reads all, and writes meanwhile
    answers_early,  ///< answers without having read all
    leaves,         ///< lets it go after some pieces
  };
  std::uint32_t from = 0;  ///< host
  std::uint32_t to = 0;    ///< host
  std::uint32_t up = 0;    ///< pieces of the request
  std::uint32_t down = 0;  ///< pieces of the response
  Manner manner = Manner::answers_all;
  bool may_expire = false;
  bool cancelled = false;
  bool own_session = false;  ///< over a session that the opener had opened

  std::uint32_t taken = 0;
  std::uint32_t ended = 0;
  bool crashed = false;  ///< its opener, meanwhile
  rpc::CallResult result{};
};

/// All calls in pieces of a scenario, by number.
using StreamLedger = std::deque<SentStream>;

/// Opens calls in pieces and takes those of others, and looks at each piece: what an application does that has its
/// host's thread.
class StreamPart {
 public:
  StreamPart(const StreamPlan& plan, Ledger& ledger, StreamLedger& calls, std::uint64_t seed)
      : plan_(plan), ledger_(ledger), calls_(calls), random_(seed), left_(plan.calls) {}

  void start(Host& host);
  bool handle(const message::MessageEvent& event);
  /// Opens another, over a session of the host's to `to`, if its plan says so.
  void open_some(message::SessionId session, std::uint32_t to, bool own_session);
  /// Reads and writes. True: there will be more to do without anything happening.
  bool work();
  [[nodiscard]] Nanos next_deadline() const { return streams_ ? streams_->next_deadline() : message::kNever; }
  void crash();
  /// Whether there is nothing to be opened, read or written any more.
  [[nodiscard]] bool done() const { return left_ == 0 && idle(); }
  [[nodiscard]] bool idle() const { return own_.empty() && served_.empty() && all_free(); }
  [[nodiscard]] std::string state() const;
  /// At the end: what no peer of ours may have done.
  void check();

 private:
  struct End {
    rpc::CallStream stream;
    std::uint32_t call = 0;
    std::uint32_t read = 0;
    std::uint32_t written = 0;
    bool all_written = false;
    std::uint32_t cancel_after = ~0U;  ///< pieces that were read or written
  };
  void take(rpc::CallStream stream);
  /// True: it paused for its pace.
  bool read(End& end, bool up);
  bool write(End& end, std::uint32_t pieces, bool up);
  bool work_at_own(End& end);
  bool work_at_served(End& end);
  [[nodiscard]] bool all_free() const { return !streams_ || streams_->available() == plan_.places; }
  [[nodiscard]] std::vector<std::uint8_t> piece(std::uint32_t call, bool up, std::uint32_t number) const;

  StreamPlan plan_;
  Ledger& ledger_;
  StreamLedger& calls_;
  Random random_;
  std::uint32_t left_;
  Host* host_ = nullptr;
  std::unique_ptr<rpc::CallStreams> streams_;
  std::deque<End> own_;
  std::deque<End> served_;
};

/// What is wrong with how it ended. `excused`: sessions may have been given up, or an end drained. `strict`: servers
/// that drained had all the time that they needed.
void check_ended(const SentStream& call, std::uint32_t number, bool peers_lost, bool drained, bool strict,
                 Ledger& ledger);

}  // namespace warpline::sim
