// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/service/streams/ring_reader.h"

namespace warpline::service {

/// Writes the bytes of connections to files, one each, on a thread of its own, so that the lcore that receives them
/// never enters the kernel. The two talk through rings: orders go to the thread, and what has been written comes back.
/// The calls below are the lcore's unless they say otherwise.
///
/// A connection is a number below the count that the writer was started for. It has one life at a time: begin(), any
/// write()s of which at most kPieces are unanswered, end(), and the answer to that. So no ring is ever full.
class StreamWriter {
 public:
  static constexpr std::uint32_t kPieces = 4;

  /// An answer: `length` bytes of the connection were written, or, if `ended`, its file is complete and closed.
  struct Done {
    std::uint32_t connection = 0;
    std::uint32_t length = 0;
    bool ended = false;
  };

  /// Makes the folder if it is not there, and starts the thread. Control thread. `writers`: how many the program has,
  /// all with so many connections. `reader` brings bytes to the CPU that are where it does not reach; without it they
  /// are host memory. Errors: environment, if the folder cannot be made or written to, or so many files cannot be open.
  [[nodiscard]] static Result<std::unique_ptr<StreamWriter>> start(const std::string& folder, std::uint32_t connections,
                                                                   std::uint32_t writers = 1,
                                                                   std::unique_ptr<RingReader> reader = nullptr);
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;
  ~StreamWriter() { stop(); }

  /// Opens a new file whose name says the ends: DIR/ADDR_PORT-ADDR_PORT, the peer first; with -2, -3, ... behind it if
  /// that is there already. Nothing that exists is written to.
  void begin(std::uint32_t connection, const SocketAddress& peer, const SocketAddress& local);
  /// Appends bytes, which stay as they are until the answer. At least one, and at most 4 GiB less one.
  void write(std::uint32_t connection, std::span<const std::uint8_t> bytes);
  /// Closes the file behind what was written.
  void end(std::uint32_t connection);
  /// Takes the next answer; false if there is none.
  [[nodiscard]] bool done(Done& answer) { return answers_.pop(answer); }

  /// Whether something could not be written: nothing more is, and no answers come. Any thread.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t files() const { return files_.get(); }  ///< that were opened; any thread
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.get(); }  ///< that were written; any thread

  /// Leaves what was ordered and is not written yet, so that stop() returns soon. Any thread.
  void abandon() { abandoned_.store(true, std::memory_order_relaxed); }
  /// Ends the thread, behind what was ordered unless that fails or is abandoned. Control thread; after the lcore's last
  /// call.
  void stop();
  /// Returns what could not be written. Control thread, after stop().
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  struct Ends {
    SocketAddress peer, local;
  };
  struct Order {
    enum class Kind : std::uint8_t { begin, write, end };
    Kind kind = Kind::begin;
    std::uint32_t connection = 0;
    std::uint32_t length = 0;
    const std::uint8_t* bytes = nullptr;
  };

  StreamWriter(std::string folder, std::uint32_t connections, std::unique_ptr<RingReader> reader);
  void run();
  [[nodiscard]] bool carry_out(const Order& order);
  [[nodiscard]] bool open_file(std::uint32_t connection);
  [[nodiscard]] bool write_all(const Order& order);
  [[nodiscard]] bool write_to(int handle, std::span<const std::uint8_t> bytes);
  [[nodiscard]] bool close_file(std::uint32_t connection);
  [[nodiscard]] bool fail(const std::string& what, int error);

  std::string folder_;
  std::unique_ptr<RingReader> reader_;
  std::vector<Ends> ends_;    ///< of each connection; written before begin() is ordered
  std::vector<int> handles_;  ///< of each connection's file, -1: none; the thread's
  SpscRing<Order> orders_;
  SpscRing<Done> answers_;
  Counter files_;
  Counter bytes_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> abandoned_{false};
  std::optional<Error> failure_;
  std::thread thread_;
};

}  // namespace warpline::service
