// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/capture/capture.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/port/port.h"

struct rte_eth_rxtx_callback;

namespace warpline::datapath {

/// PathCapture captures what paths drop and, if that is asked for, what they receive and send. What is received is
/// copied as it comes, and what is sent as it is offered to the port, by callbacks of DPDK in the calls that receive
/// and send, so paths do nothing for it; a packet of these that the port does not take is copied once more, as dropped.
/// The control thread makes all calls.
class PathCapture {
 public:
  /// Opens the capture; from here on the paths' lcores take copies of what they drop. `ports` are those of the paths,
  /// and paths and ports are there until finish(). Errors are those of capture::Capture::open(), and
  /// environment, if DPDK has no such callbacks.
  [[nodiscard]] static Result<std::unique_ptr<PathCapture>> open(const capture::CaptureSettings& settings,
                                                                 std::span<const port::Port> ports,
                                                                 std::span<const std::unique_ptr<QueuePath>> paths,
                                                                 std::string_view application);
  PathCapture(const PathCapture&) = delete;
  PathCapture& operator=(const PathCapture&) = delete;
  ~PathCapture() { finish(); }

  /// Starts to write.
  void start() { capture_->start(); }
  /// Writes all that was captured. After the lcores have ended, and before ports are closed. More than once does no
  /// more.
  void finish();

  [[nodiscard]] capture::CaptureTotals totals() const { return capture_->totals(); }

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

  explicit PathCapture(std::unique_ptr<capture::Capture> capture) : capture_(std::move(capture)) {}

  [[nodiscard]] Result<void> watch(const QueuePath& path, capture::CaptureSource& received,
                                   capture::CaptureSource& offered);
  [[nodiscard]] Result<void> keep(const Callback& callback);
  static std::uint16_t on_received(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                   std::uint16_t most, void* tap);
  static std::uint16_t on_offered(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                  void* tap);

  std::unique_ptr<capture::Capture> capture_;
  std::vector<QueuePath*> paths_;  ///< that know of it
  std::vector<std::unique_ptr<Tap>> taps_;
  std::vector<Callback> callbacks_;
};

}  // namespace warpline::datapath
