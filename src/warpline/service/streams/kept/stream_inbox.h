// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/service/streams/kept/stream_home.h"
#include "warpline/transport/wake_up.h"

namespace warpline::service {

/// Bytes of a connection in its ring, in host memory or in that of a GPU. They stay as they are until this is
/// destroyed, by any thread, whatever became of the connection and of the run; only then their place is the
/// connection's again.
class KeptBytes {
 public:
  KeptBytes(std::shared_ptr<StreamHome> home, std::uint32_t place, const StreamHome::Piece& piece)
      : home_(std::move(home)), place_(place), piece_(piece) {}
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;
  ~KeptBytes() {
    using enum StreamHome::Reader;
    home_->give_back(place_, piece_.begin, lost_ ? unknown : read_ ? known : none);
  }

  /// Notes that the stream, a cudaStream_t, may read the bytes, which lie on a GPU, by what it was given so far: their
  /// place is the connection's again after that. Any thread.
  void used_by(CUstream_st* stream) {
    read_.store(true, std::memory_order_relaxed);
    if (!home_->wait_for(stream)) lost_.store(true, std::memory_order_relaxed);
  }

  /// CUDA ordinal of the GPU in whose memory they are; nothing: the CPU reaches them.
  [[nodiscard]] std::optional<int> gpu() const { return home_->gpu(); }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {piece_.data, piece_.size}; }
  [[nodiscard]] std::uint64_t begin() const { return piece_.begin; }  ///< counted from the stream's beginning

 private:
  std::shared_ptr<StreamHome> home_;
  std::uint32_t place_;
  StreamHome::Piece piece_;
  std::atomic<bool> read_{false};  ///< by a stream of the GPU
  std::atomic<bool> lost_{false};  ///< nobody knows until when
};

/// A connection for whoever reads it: one thread at a time. Given up when it is destroyed.
class KeptConnection {
 public:
  KeptConnection(const std::shared_ptr<StreamHome>& home, std::uint32_t place)
      : home_(home), place_(place), ends_(home_->ends(place)) {}
  KeptConnection(const KeptConnection&) = delete;
  KeptConnection& operator=(const KeptConnection&) = delete;
  ~KeptConnection() { close(); }

  [[nodiscard]] const SocketAddress& peer() const { return ends_.peer; }    ///< who connected
  [[nodiscard]] const SocketAddress& local() const { return ends_.local; }  ///< to where
  /// Returns the next bytes; null if none are there now, or if state() is not open: then none will come any more.
  [[nodiscard]] std::shared_ptr<KeptBytes> take();
  /// How the connection ended; open until take() has found that all of it was taken.
  [[nodiscard]] stream::ConnectionState state() const { return state_; }
  /// Whether close() was called while bytes could come.
  [[nodiscard]] bool closed() const { return !home_ && state_ == stream::ConnectionState::open; }
  /// Wants no more bytes: the peer is reset unless all of them were taken, once nobody has any of them.
  void close();
  /// Whether so many bytes are kept that no more can come.
  [[nodiscard]] bool is_full() const { return home_ && home_->is_full(place_); }

 private:
  std::shared_ptr<StreamHome> home_;  ///< null once it has ended: the place may be another connection's
  std::uint32_t place_;
  StreamHome::Ends ends_;
  stream::ConnectionState state_ = stream::ConnectionState::open;
};

/// What StreamInbox::take() tells of a connection: that it is there, or that it has something new.
struct ConnectionNews {
  std::uint64_t number = 0;                    ///< names it in this inbox
  std::unique_ptr<KeptConnection> connection;  ///< null if it was told of before
};

/// Where a run puts connections for a consumer that keeps their bytes as long as it likes. What is kept has no place
/// in its ring for anything else: the window closes, and the peer waits. One thread takes news; connections and bytes
/// go to any, and outlive inbox and run.
class StreamInbox {
 public:
  /// Environment error: the process has no descriptor left.
  [[nodiscard]] static Result<std::shared_ptr<StreamInbox>> make();

  /// Appends what is new since the last call. Of a connection that was given up there may be some, too.
  void take(std::vector<ConnectionNews>& into);
  /// Returns true once the run has ended: no bytes can be taken any more.
  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// How the consumer sleeps until there is news or the run has ended; see WakeUp.
  [[nodiscard]] transport::WakeUp& bell() { return *bell_; }

  // The run's side.

  /// Adds the connections of a queue. Control thread, before any come.
  void add(std::shared_ptr<StreamHome> home);
  /// Tells the consumer that there is news. Lcores.
  void tell() { bell_->wake(); }
  /// Nothing comes any more. Control thread.
  void end();

 private:
  explicit StreamInbox(std::unique_ptr<transport::WakeUp> bell) : bell_(std::move(bell)) {}

  std::unique_ptr<transport::WakeUp> bell_;
  std::vector<std::shared_ptr<StreamHome>> homes_;
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::service
