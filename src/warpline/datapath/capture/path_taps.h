// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/capture/capture_source.h"
#include "warpline/capture/capture_writer.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/port/port.h"

struct rte_eth_rxtx_callback;

namespace warpline::datapath {

/// PathTaps are where paths let one capture at a time take copies of what they drop and, if that is asked for, of what
/// they receive and send, while packets flow. What is received is copied as it comes, and what is sent as it is offered
/// to the port, by callbacks of DPDK in the calls that receive and send, so paths do nothing for it; a packet of these
/// that the port does not take is copied once more, as dropped. The control thread makes all calls.
class PathTaps {
 public:
  /// `ports` are those of the paths, `threads` all that poll these; paths, ports and threads outlive it.
  /// `traces`: the paths have stages that tell packets' ways.
  PathTaps(std::span<const port::Port> ports, std::span<const std::unique_ptr<QueuePath>> paths,
           std::vector<const TurnCount*> threads, bool traces);
  PathTaps(const PathTaps&) = delete;
  PathTaps& operator=(const PathTaps&) = delete;
  ~PathTaps() { end(); }

  [[nodiscard]] const std::vector<capture::CaptureInterface>& interfaces() const { return interfaces_; }
  /// Returns how many sources attach() takes: one a thread, and a path is received by one thread, and sent, and its
  /// packets dropped, by one.
  [[nodiscard]] std::uint32_t sources(bool watches) const {
    return static_cast<std::uint32_t>(paths_.size()) * (watches ? 2 : 1);
  }

  /// Has these sources, which stay until is_free(), take copies: with `watches` also of what is received and sent. Only
  /// if is_free(). Environment error: DPDK has no such callbacks.
  [[nodiscard]] Result<void> attach(std::span<const std::unique_ptr<capture::CaptureSource>> sources, bool watches);
  [[nodiscard]] bool traces() const { return traces_; }
  /// Has these sources, sources(false) of them, told the ways of packets likewise.
  void trace(std::span<const std::unique_ptr<capture::CaptureSource>> sources);
  /// Ends that. A thread may still be at it, until is_free().
  void detach();
  /// Returns true if no thread uses any sources. To be asked again and again after detach().
  [[nodiscard]] bool is_free();
  /// Ends all at once: after the threads have ended. More than once does no more.
  void end();

 private:
  /// What the callbacks of a path's queues know of it.
  struct Tap {
    capture::CaptureSource& received;
    capture::CaptureSource& offered;
    const QueuePath& path;
    std::uint64_t retries = 0;  ///< that the path had counted when it last offered packets
  };
  /// A callback that DPDK has of ours.
  struct Callback {
    port::PortQueue at;
    bool receives;
    const rte_eth_rxtx_callback* callback;
  };

  [[nodiscard]] Result<void> watch(const QueuePath& path, capture::CaptureSource& received,
                                   capture::CaptureSource& offered);
  [[nodiscard]] Result<void> keep(const Callback& callback);
  void forget();
  static std::uint16_t on_received(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                   std::uint16_t most, void* tap);
  static std::uint16_t on_offered(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                  void* tap);

  std::vector<capture::CaptureInterface> interfaces_;
  std::span<const std::unique_ptr<QueuePath>> paths_;
  std::vector<const TurnCount*> threads_;
  std::vector<std::unique_ptr<Tap>> taps_;
  std::vector<Callback> callbacks_;
  bool traces_;
  bool attached_ = false;
  std::optional<TurnWatch> leaving_;  ///< set: detached, and threads may still be at it
  int turns_left_ = 0;                ///< that each thread has to end until none is
};

}  // namespace warpline::datapath
