// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/gpu/stream_tickets.h"
#include "warpline/stream/stream_events.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::service {

/// What a queue's lcore and those who keep bytes of its connections tell each other: a place for each connection, and
/// the memory of the rings, the host's or a GPU's, which lives as long as anybody has some of it. The lcore neither
/// locks nor allocates.
class StreamHome {
 public:
  /// The GPU in whose memory rings lie.
  struct Gpu {
    int ordinal = 0;                              ///< of CUDA
    std::unique_ptr<gpu::StreamTickets> tickets;  ///< of that GPU
  };

  /// For a receiver of those settings. `chunk`: bytes of a connection that are taken at once, half a ring at most; 0:
  /// as they come. Without `gpu` the CPU reaches the rings.
  StreamHome(std::shared_ptr<const void> rings, const stream::ReceiverSettings& settings, std::uint64_t chunk,
             std::optional<Gpu> gpu = std::nullopt);
  StreamHome(const StreamHome&) = delete;
  StreamHome& operator=(const StreamHome&) = delete;

  // The lcore's.

  /// Tells of a connection that is new. `ring`: where byte 0 of its ring lies.
  void begin(std::uint32_t place, const stream::StreamView& view);
  /// Tells how many bytes of a connection have come, from its beginning, and how it stands. True if its keeper is to
  /// look: a chunk is there, or an end.
  bool reach(std::uint32_t place, std::uint64_t arrived, stream::ConnectionState state);
  /// What the keepers of a connection have said so far.
  struct Said {
    std::uint64_t released = 0;  ///< bytes that nobody has, and no stream of a GPU reads, any more; from its beginning
    bool rests = false;          ///< nobody has bytes beyond these
    enum { nothing, read, let_go } end = nothing;  ///< whether it was read to its end, or given up before
  };
  [[nodiscard]] Said said(std::uint32_t place);
  /// Calls `look`, which asks said(), with each place of which something was said since the last time, or whose bytes a
  /// GPU has read since. True if there was one.
  template <typename Look>
  bool take_changes(Look&& look) {
    const auto read = [&](std::uint32_t index) {
      Place& awaiting = places_[index];
      if (!gpu_->tickets->is_done(awaiting.awaited)) return false;
      look(index);
      awaiting.awaits = awaiting.awaited != 0;
      return !awaiting.awaits;
    };
    const bool any = std::erase_if(read_yet_, read) != 0;
    std::uint32_t place = changed_.exchange(kNone, std::memory_order_acquire);
    if (place == kNone) return any;
    while (place != kNone) {
      const std::uint32_t next = places_[place].next_changed;
      (void)places_[place].changed.exchange(false, std::memory_order_acq_rel);
      look(place);
      place = next;
    }
    return true;
  }
  /// Lets nobody take bytes from now on.
  void shut() { shut_.store(true, std::memory_order_seq_cst); }
  /// Whether nobody has any bytes; after shut() that stays so.
  [[nodiscard]] bool unused() const { return kept_.load(std::memory_order_seq_cst) == 0; }

  // The one thread's that takes news.

  /// A place that has something new: a connection, bytes or an end.
  struct News {
    std::uint32_t place;
    std::uint64_t number;  ///< of its connection, counted from 1
    bool begins;           ///< it is the first of that connection
  };
  [[nodiscard]] std::optional<News> news();

  // Any thread's, of a connection that was not given up: KeptConnection and KeptBytes call these.

  struct Ends {
    SocketAddress peer, local;
  };
  [[nodiscard]] Ends ends(std::uint32_t place) const { return places_[place].ends; }
  [[nodiscard]] std::optional<int> gpu() const { return gpu_ ? std::optional(gpu_->ordinal) : std::nullopt; }
  /// What take() finds.
  struct Piece {
    const std::uint8_t* data = nullptr;
    std::uint64_t begin = 0;  ///< counted from the stream's beginning
    std::uint64_t size = 0;   ///< 0: nothing is there now, or nothing will come any more, as `state` says
    stream::ConnectionState state = stream::ConnectionState::open;  ///< not open: all of it was taken
  };
  /// Returns the next bytes; nobody writes there until give_back().
  [[nodiscard]] Piece take(std::uint32_t place);
  /// Has bytes that are given back as Reader::known from now on wait for what that cudaStream_t was given so far. Of
  /// rings on a GPU. False: nobody knows when that is done.
  [[nodiscard]] bool wait_for(CUstream_st* stream) { return gpu_->tickets->wait_for(stream); }
  /// Which streams of a GPU may read bytes yet that are given back.
  enum class Reader : std::uint8_t { none, known, unknown };
  /// Gives bytes back that take() returned, by where they begin.
  void give_back(std::uint32_t place, std::uint64_t begin, Reader reader = Reader::none);
  /// Says that no more will be taken. `read`: since all was.
  void let_go(std::uint32_t place, bool read);
  /// Whether so much is kept that nothing can come.
  [[nodiscard]] bool is_full(std::uint32_t place) const;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t kPieces =
      4;  ///< that a ring has at least, so that place becomes free while others are used

  /// Taken bytes.
  struct Taken {
    std::uint64_t begin;
    std::uint64_t end;
    bool back = false;
  };

  struct Place {
    // Written by the lcore while nobody has the connection.
    Ends ends;
    const std::uint8_t* ring = nullptr;
    std::atomic<std::uint64_t> number{0};
    // The lcore's alone.
    std::uint64_t told = 0;     ///< bytes that the keeper was told of
    std::uint64_t unread = 0;   ///< bytes that no stream reads any more
    std::uint64_t awaited = 0;  ///< the ticket with which `unread` will be `next_unread`; 0: none
    std::uint64_t next_unread = 0;
    bool awaits = false;  ///< stands in `read_yet_`
    // By the lcore, to the keepers.
    std::atomic<std::uint64_t> arrived{0};
    std::atomic<stream::ConnectionState> state{stream::ConnectionState::open};
    std::atomic<bool> noticed{false};  ///< stands in the ring of news
    // By the keepers, to the lcore.
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> released{0};
    std::atomic<std::uint64_t> ticket{0};  ///< with which nothing reads what was released; stored before that is
    std::atomic<std::uint8_t> end{Said::nothing};
    std::atomic<bool> changed{false};  ///< stands in the list of changes
    std::uint32_t next_changed = kNone;
    // The keepers'.
    std::mutex lock;
    std::deque<Taken> pieces;  ///< those that are not released, in their order
    std::uint64_t known = 0;   ///< number of the connection that news told of last
  };

  void notice(std::uint32_t place);
  /// Returns up to where a GPU has read what is released.
  [[nodiscard]] std::uint64_t unread(std::uint32_t place, std::uint64_t released);
  /// Puts a place on the list of changes, unless it is there.
  void change(std::uint32_t place);

  std::shared_ptr<const void> rings_;
  std::uint64_t ring_bytes_;
  std::uint64_t chunk_;
  std::uint64_t last_number_ = 0;  ///< the lcore's
  std::vector<Place> places_;
  std::vector<std::uint32_t> read_yet_;  ///< the lcore's: places that await a ticket
  SpscRing<std::uint32_t> news_;         ///< places, each once at most
  std::atomic<std::uint32_t> changed_{kNone};
  std::atomic<std::uint64_t> kept_{0};  ///< pieces
  std::atomic<bool> shut_{false};
  std::optional<Gpu> gpu_;  ///< the last: what reads the rings has ended when they go
};

}  // namespace warpline::service
