// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/stream/payload_source.h"
#include "warpline/stream_port/send_queue.h"
#include "warpline/transport/nano_clock.h"

namespace warpline::stream_port {

/// Bytes that a SendWorker sends.
class SendSource : public stream::PayloadSource {
 public:
  /// Is called once per connection, before its first byte is offered. `port`: the local port. On the worker's thread.
  virtual void begin(stream::ConnectionId connection, std::uint16_t port) = 0;
};

/// What a SendWorker sends.
struct SendPlan {
  SocketAddress peer{};           ///< to whom
  std::uint32_t connections = 1;  ///< at once
  std::uint64_t bytes = 0;        ///< of each connection; 0: until it is told to finish
  std::uint64_t chunk = 0;        ///< bytes of which all are acknowledged before the next are sent; 0: all bytes
  std::uint64_t ahead = 0;        ///< bytes that are offered before they are acknowledged, where there is no chunk
};

/// The loop of the lcore that sends streams: opens connections, has their bytes sent, and closes them.
class SendWorker {
 public:
  /// Ends when all connections have ended or `stop` is set. `gives_way`: other threads need its core, as of Turns.
  SendWorker(SendQueue& queue, SendSource& source, const SendPlan& plan, const transport::NanoClock& clock,
             const std::atomic<bool>& stop, bool gives_way);

  /// Until the end, on the calling thread; connections that are left are aborted. Behind done() it goes on handing over
  /// what is for other queues of the port, until all have ended.
  void run();
  /// Has connections closed behind what they have offered so far; those that are not open yet are given up, and what
  /// peers take none of for ten seconds is left. Any thread.
  void finish() { finishing_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }  ///< any thread
  /// Returns true if nobody said in time where the next hop is; any thread.
  [[nodiscard]] bool unresolved() const { return unresolved_.load(std::memory_order_relaxed); }
  /// Returns true if the queue's payload came no more; after done(), any thread.
  [[nodiscard]] bool failed() const { return queue_.payload() != nullptr && queue_.payload()->failure().has_value(); }
  /// Returns why, if so. After the end.
  [[nodiscard]] std::optional<Error> failure() const {
    return queue_.payload() != nullptr ? queue_.payload()->failure() : std::nullopt;
  }
  /// When the first connection's SYN left, and bytes were last acknowledged so far: ns of the clock; any thread.
  [[nodiscard]] std::uint64_t first_syn() const { return first_.get(); }
  [[nodiscard]] std::uint64_t last_acknowledgement() const { return last_byte_.get(); }  ///< likewise
  /// Seconds between the two.
  [[nodiscard]] double sending_s() const { return static_cast<double>(last_byte_.get() - first_.get()) / 1e9; }
  /// Nanoseconds from a chunk's offer to its acknowledgement; any thread.
  [[nodiscard]] const Histogram& chunk_times() const { return chunk_times_; }

 private:
  struct Flow {
    stream::ConnectionId id;
    std::uint64_t offered = 0;
    std::uint64_t chunk_end = 0;   ///< of the chunk that is on its way
    std::int64_t chunk_began = 0;  ///< ns; 0: none is
    std::uint16_t port = 0;        ///< ours
    bool known = false;
    bool closed = false;
  };

  [[nodiscard]] bool turn(Nanos now);
  void end_all(Nanos now);
  void open_some(Nanos now);
  void handle(const stream::SendEvent& event, Nanos now);
  void feed(Flow& flow, std::uint64_t acknowledged, Nanos now);
  void offer(Flow& flow, std::uint64_t bytes);
  void wind_up();

  SendQueue& queue_;
  SendSource& source_;
  SendPlan plan_;
  std::uint64_t room_;  ///< bytes behind the oldest that is not acknowledged that there may be
  const transport::NanoClock& clock_;
  const std::atomic<bool>& stop_;
  bool gives_way_;
  std::vector<Flow> flows_;  ///< by the sender's place
  std::uint32_t opened_ = 0;
  std::uint32_t ended_ = 0;
  bool finished_ = false;  ///< finish() was heard
  std::uint64_t bytes_ = 0;
  Nanos began_{};
  Nanos progress_at_{};  ///< when a peer last acknowledged bytes, or finish() was heard
  Counter first_;        ///< ns of the clock
  Counter last_byte_;    ///< likewise
  Histogram chunk_times_;
  std::atomic<bool> finishing_{false};
  std::atomic<bool> unresolved_{false};
  std::atomic<bool> done_{false};
};

}  // namespace warpline::stream_port
