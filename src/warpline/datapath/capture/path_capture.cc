// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/path_capture.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/capture/capture_mbuf.h"

namespace warpline::datapath {

Result<std::unique_ptr<PathCapture>> PathCapture::open(const capture::CaptureSettings& settings,
                                                       std::span<const port::Port> ports,
                                                       std::span<const std::unique_ptr<QueuePath>> paths,
                                                       std::string_view application) {
  std::vector<capture::CaptureInterface> interfaces;
  for (const port::Port& port : ports) interfaces.push_back({port.id(), port.name()});
  const bool watches = !settings.what.dropped_only;
  // One source a thread: a path is received by one and sent, and its packets dropped, by one.
  const std::size_t of_path = watches ? 2 : 1;
  WARPLINE_TRY(auto opened, capture::Capture::open(settings, interfaces, of_path * paths.size(), application));
  std::unique_ptr<PathCapture> capture(new PathCapture(std::move(opened)));
  const auto source = [&](std::size_t path, std::size_t which) -> capture::CaptureSource& {
    return capture->capture_->source(of_path * path + which);
  };
  for (std::size_t i = 0; watches && i < paths.size(); ++i) {
    WARPLINE_CHECK(capture->watch(*paths[i], source(i, 1), source(i, 0)));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    paths[i]->capture = &source(i, 0);
    capture->paths_.push_back(paths[i].get());
  }
  return capture;
}

Result<void> PathCapture::watch(const QueuePath& path, capture::CaptureSource& received,
                                capture::CaptureSource& offered) {
  Tap* const tap =
      taps_.emplace_back(std::make_unique<Tap>(Tap{.received = received, .offered = offered, .path = path})).get();
  WARPLINE_CHECK(keep({path.rx, true, rte_eth_add_rx_callback(path.rx.port, path.rx.queue, on_received, tap)}));
  WARPLINE_CHECK(keep({path.tx, false, rte_eth_add_tx_callback(path.tx.port, path.tx.queue, on_offered, tap)}));
  if (!path.responder || path.reply == path.tx) return {};
  return keep({path.reply, false, rte_eth_add_tx_callback(path.reply.port, path.reply.queue, on_offered, tap)});
}

Result<void> PathCapture::keep(const Callback& callback) {
  if (callback.callback != nullptr) {
    callbacks_.push_back(callback);
    return {};
  }
  return environment_error("cannot capture all packets", rte_strerror(rte_errno),
                           "use a DPDK with RTE_ETHDEV_RXTX_CALLBACKS, or --capture-what dropped");
}

std::uint16_t PathCapture::on_received(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                       std::uint16_t /*most*/, void* tap) {
  if (count == 0) return 0;
  capture::CaptureSource& source = static_cast<Tap*>(tap)->received;
  const std::uint64_t now = ticks_now();
  for (std::uint16_t i = 0; i < count; ++i) {
    capture_mbuf(source, *mbufs[i], {port, queue}, capture::Direction::inbound, Verdict::forward, now);
  }
  return count;
}

std::uint16_t PathCapture::on_offered(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                      void* tap) {
  Tap& own = *static_cast<Tap*>(tap);
  // What is offered once more, because the port did not take it, was copied the first time.
  const std::uint64_t retries = own.path.sent.retries.get();
  if (std::exchange(own.retries, retries) != retries) return count;
  const std::uint64_t now = ticks_now();
  for (std::uint16_t i = 0; i < count; ++i) {
    capture_mbuf(own.offered, *mbufs[i], {port, queue}, capture::Direction::outbound, Verdict::forward, now);
  }
  return count;
}

void PathCapture::finish() {
  for (QueuePath* const path : std::exchange(paths_, {})) path->capture = nullptr;
  for (const auto& [at, receives, callback] : std::exchange(callbacks_, {})) {
    const int removed = receives ? rte_eth_remove_rx_callback(at.port, at.queue, callback)
                                 : rte_eth_remove_tx_callback(at.port, at.queue, callback);
    // The lcores have ended, so nobody is in it, and its memory may go at once.
    if (removed == 0) rte_free(const_cast<rte_eth_rxtx_callback*>(callback));
  }
  capture_->finish();
}

}  // namespace warpline::datapath
