// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/service/streams/stream_chunks.h"
#include "warpline/stream_port/run/stream_application.h"
#include "warpline/stream_port/seeded_comparer.h"

namespace warpline::service {

/// What `stream receive --verify` does with the bytes of connections that lie in a GPU's memory: has them compared
/// there, a batch at a time, with those of `stream send` with the same seed. Their place is given back when their batch
/// has ended. A connection is closed behind its last byte.
class ComparedStreams final : public stream_port::StreamApplication {
 public:
  /// For a receiver of so many connections. `chunk`: bytes of a connection that are compared at once, half a ring at
  /// most; 0: as they come.
  ComparedStreams(std::uint32_t connections, std::unique_ptr<stream_port::SeededComparer> comparer,
                  std::uint64_t chunk = 0);

  bool turn(stream::StreamReceiver& receiver, Nanos now) override;
  [[nodiscard]] bool settled() const override { return batch_.empty() && waiting_.empty(); }
  [[nodiscard]] bool failed() const override { return failed_; }
  void finish() override;
  void abandon() override { batch_.clear(); }
  std::uint32_t abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos now) override;

  [[nodiscard]] const Histogram& chunk_times() const { return chunks_.times(); }  ///< as of StreamChunks; any thread
  [[nodiscard]] std::uint64_t checked() const { return checked_.get(); }          ///< bytes; any thread
  [[nodiscard]] std::uint64_t wrong() const { return comparer_->wrong(); }        ///< bytes
  [[nodiscard]] std::optional<Error> failure() const { return comparer_->failure(); }  ///< why it failed()

 private:
  /// A connection that is known.
  struct Place {
    stream::ConnectionId id;
    bool known = false;
    bool waits = false;  ///< it stands in waiting_
  };
  /// Bytes that are being compared, the oldest of their connection.
  struct Compared {
    std::uint32_t place;
    std::uint64_t bytes;
    bool last;  ///< none follow
  };

  void end_batch(stream::StreamReceiver& receiver, Nanos now);
  void begin_batch(stream::StreamReceiver& receiver, Nanos now);

  std::unique_ptr<stream_port::SeededComparer> comparer_;
  StreamChunks chunks_;
  std::vector<Place> places_;           ///< by the receiver's
  std::vector<std::uint32_t> waiting_;  ///< places that something happened to
  std::vector<Compared> batch_;
  std::vector<stream::SeededPiece> pieces_;  ///< of the batch
  Counter checked_;
  std::uint32_t looks_ = 0;
  bool failed_ = false;
  std::uint32_t next_abort_ = 0;
};

}  // namespace warpline::service
