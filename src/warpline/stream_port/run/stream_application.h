// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/stream_receiver.h"

namespace warpline::stream_port {

/// Uses the bytes of received connections. The lcore of a queue makes all calls. An application that releases all bytes
/// in turn() needs no other function.
class StreamApplication {
 public:
  StreamApplication() = default;
  StreamApplication(const StreamApplication&) = default;  ///< copies what a derived class refers to
  StreamApplication& operator=(const StreamApplication&) = default;
  virtual ~StreamApplication() = default;

  /// Takes events from `receiver`, reads and releases bytes. Is called once per iteration of the loop; does not wait.
  /// Returns true if there was something to do.
  virtual bool turn(stream::StreamReceiver& receiver, Nanos now) = 0;
  /// Returns true if all bytes that were read have reached their destination.
  [[nodiscard]] virtual bool settled() const { return true; }
  /// Returns true if it cannot continue: the run ends.
  [[nodiscard]] virtual bool failed() const { return false; }
  /// No more bytes will be received: those that were held back to be read together are read now.
  virtual void finish() {}
  /// Drops the bytes that are not settled: the rings are not read any more.
  virtual void abandon() {}
  /// Aborts at most `max` of the open connections, so that their peers do not take all bytes for read. Returns the
  /// number; 0: none is left, or the application leaves them open. Is the last call.
  virtual std::uint32_t abort_some(stream::StreamReceiver& /*receiver*/, std::uint32_t /*max*/, Nanos /*now*/) {
    return 0;
  }
};

}  // namespace warpline::stream_port
