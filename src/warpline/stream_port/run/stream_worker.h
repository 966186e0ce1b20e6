// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "warpline/base/statistics/counter.h"
#include "warpline/stream_port/run/stream_application.h"
#include "warpline/stream_port/stream_queue.h"
#include "warpline/transport/nano_clock.h"

namespace warpline::stream_port {

/// The loop of the lcore that receives streams: a queue and what is done with its bytes.
class StreamWorker {
 public:
  /// `gives_way`: other threads need its core, as of Turns. Ends when `stop` is set or `application` has failed.
  StreamWorker(StreamQueue& queue, StreamApplication& application, const transport::NanoClock& clock,
               const std::atomic<bool>& stop, bool gives_way)
      : queue_(queue), application_(application), clock_(clock), stop_(stop), gives_way_(gives_way) {}

  /// Until the end, on the calling thread: what had come then is settled, and connections that are left are aborted.
  /// Takes half a second for that at most.
  void run();

  /// Returns why the queue takes no frames any more, if that ended the loop. After run().
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }  ///< any thread
  /// When the first byte of payload came, and the last one so far: ns of the clock, 0 if none did; any thread.
  [[nodiscard]] std::uint64_t first_byte() const { return first_byte_.get(); }
  [[nodiscard]] std::uint64_t last_byte() const { return last_byte_.get(); }  ///< likewise

 private:
  [[nodiscard]] bool turn(Nanos now);
  [[nodiscard]] bool failed(Nanos now);
  void note_bytes(Nanos now);
  void wind_up();

  StreamQueue& queue_;
  StreamApplication& application_;
  const transport::NanoClock& clock_;
  const std::atomic<bool>& stop_;
  bool gives_way_;
  std::uint64_t bytes_ = 0;
  Nanos looked_{};  ///< at the lane
  std::optional<Error> failure_;
  Counter first_byte_;  ///< ns of the clock
  Counter last_byte_;   ///< likewise
  std::atomic<bool> done_{false};
};

}  // namespace warpline::stream_port
