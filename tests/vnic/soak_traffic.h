// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include "vnic/common/counters.h"
#include "warpline/base/random.h"
#include "wire_frame.h"

namespace warpline::vnic {

/// An EAL without hugepages, files and workers. False when it does not start.
[[nodiscard]] bool start_eal();

struct Totals {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t leaked = 0;
  std::uint64_t problems = 0;
};

/// One end of the wire: a port and the thread that sends and receives on it.
struct Side {
  std::string name;
  std::uint16_t id = RTE_MAX_ETHPORTS;
  rte_mempool* pool = nullptr;
  /// Held by the thread during a round over all queues, and by who changes what a poll must not meet.
  std::mutex polling;
  bool running = false;
  std::uint16_t queues = 1;
  std::vector<rte_flow*> flows;
  std::atomic<std::uint64_t> rounds{0};  ///< that the thread has done, also while nothing runs
  std::atomic<std::uint64_t> sent{0};    ///< written by the thread, a burst later than the frames leave
  // The thread's, or the holder's of `polling`.
  std::uint64_t received = 0;
  std::uint64_t foreign = 0;
  std::uint64_t changed = 0;           ///< frames that came otherwise than they went
  std::vector<std::uint64_t> counted;  ///< by ports of that name that were closed ...
  std::uint64_t unseen_at_most = 0;    ///< ... but for frames that came between the last look at them and their end
  std::uint64_t unseen = 0;
  std::thread thread;
};

/// Two joined ports under load from construction to finish().
class Traffic {
 public:
  Traffic(std::uint64_t seed, std::string engine);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  [[nodiscard]] Side& side(unsigned which) { return sides_[which]; }
  [[nodiscard]] Side& other_of(const Side& side) { return sides_[side.name == sides_[0].name ? 1 : 0]; }
  [[nodiscard]] std::uint64_t problems() const { return problems_.load(std::memory_order_relaxed); }

  // Each while the other side goes on. Control thread.
  void restart(Side& side, Random& random);
  void reconfigure(Side& side, Random& random);
  void restart_queue(Side& side, Random& random);
  void close_and_reopen(Side& side, Random& random);
  void change_faults(const Side& side, Random& random);
  void change_flows(Side& side, Random& random);
  void change_table(Side& side, Random& random);
  void ask(const Side& side);
  /// Returns when the thread of `side`, whose `polling` the caller does not hold, has done so many more rounds: how
  /// long that takes is a matter of load, not of the clock.
  static void await_rounds(const Side& side, std::uint64_t rounds);
  /// Both sides pause: everything is accounted for.
  void check();
  /// Ends the traffic and closes the ports.
  Totals finish();

 private:
  void open(Side& side, Random& random);
  bool configure(Side& side, Random& random);
  void stop(Side& side);
  void close(Side& side);
  void run(Side& side);
  void send(Side& side, Random& random);
  void receive(Side& side, const WireFrames& frames);
  void account(Side& from, Side& to);
  [[nodiscard]] std::uint64_t count(const Side& side, Count which) const;
  [[nodiscard]] std::string count_text(const Side& side, Count which) const;
  void problem(const std::string& what);

  std::uint64_t seed_;
  std::string engine_;
  WireFrames frames_[2];
  Side sides_[2];
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> problems_{0};
};

}  // namespace warpline::vnic
