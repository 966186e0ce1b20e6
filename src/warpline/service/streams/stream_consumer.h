// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/statistics/counter.h"
#include "warpline/service/streams/stream_chunks.h"
#include "warpline/service/streams/stream_writer.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream_port/run/stream_application.h"

namespace warpline::service {

/// What `stream receive --verify` compares received bytes with that the CPU reaches: those of `stream send` with the
/// same seed.
struct StreamCheck {
  explicit StreamCheck(std::uint64_t seed) : payload(seed) {}

  /// Compares the first `length` bytes that can be read. By the lcore.
  void take(const stream::StreamView& view, std::uint64_t length) {
    checked.add(length);
    if (payload.matching(view.peer.port, view.begin, view.bytes.first(length)) != length) bad.add(1);
  }

  stream::SeededPayload payload;
  Counter checked;  ///< bytes
  Counter bad;      ///< pieces with a wrong byte
};

/// What `stream receive` does with the bytes of connections: counts them and gives their place back at once, or has
/// them written first. A connection is closed behind its last byte.
class StreamConsumer final : public stream_port::StreamApplication {
 public:
  /// For a receiver of so many connections with rings of so many bytes; without a `writer` bytes are but counted.
  /// `check`, if there is one and no writer, compares them before. `chunk`: bytes of a connection that are taken at
  /// once, half a ring at most; 0: as they come.
  StreamConsumer(std::uint32_t connections, std::uint64_t ring_bytes, StreamWriter* writer,
                 StreamCheck* check = nullptr, std::uint64_t chunk = 0);

  bool turn(stream::StreamReceiver& receiver, Nanos now) override;
  [[nodiscard]] bool settled() const override { return unanswered_ == 0; }
  [[nodiscard]] bool failed() const override { return writer_ != nullptr && writer_->failed(); }
  void finish() override { chunks_.finish(); }
  void abandon() override {
    if (writer_ != nullptr) writer_->abandon();
  }
  std::uint32_t abort_some(stream::StreamReceiver& receiver, std::uint32_t most, Nanos now) override;
  [[nodiscard]] const Histogram& chunk_times() const { return chunks_.times(); }  ///< as of StreamChunks; any thread

 private:
  /// A connection as the writer knows it.
  struct Outlet {
    stream::ConnectionId id;
    std::uint64_t submitted = 0;  ///< bytes of the stream that were handed to the writer
    std::uint32_t pieces = 0;     ///< of these, unanswered
    bool known = false;
    bool ending = false;  ///< the writer was told that nothing follows
  };

  void handle(stream::StreamReceiver& receiver, const stream::StreamEvent& event, Nanos now);
  void take_answer(stream::StreamReceiver& receiver, const StreamWriter::Done& answer, Nanos now);
  void take(stream::StreamReceiver& receiver, Outlet& outlet, std::uint64_t readable, Nanos now);
  void submit(stream::StreamReceiver& receiver, Outlet& outlet, Nanos now);
  void take_rest(stream::StreamReceiver& receiver, Nanos now);

  StreamWriter* writer_;
  StreamCheck* check_;
  std::uint64_t largest_;  ///< bytes of a piece, so that place becomes free while others are written
  StreamChunks chunks_;
  std::vector<Outlet> outlets_;
  std::uint64_t unanswered_ = 0;  ///< pieces and ends, of all connections
  std::uint32_t next_abort_ = 0;
};

}  // namespace warpline::service
