// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/capture/path_taps.h"

#include <algorithm>
#include <utility>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/capture/capture_mbuf.h"

namespace warpline::datapath {

PathTaps::PathTaps(std::span<const port::Port> ports, std::span<const std::unique_ptr<QueuePath>> paths,
                   std::vector<const TurnCount*> threads, bool traces)
    : paths_(paths), threads_(std::move(threads)), traces_(traces) {
  for (const port::Port& port : ports) interfaces_.push_back({port.id(), port.name()});
}

Result<void> PathTaps::attach(std::span<const std::unique_ptr<capture::CaptureSource>> sources, bool watches) {
  attached_ = true;
  const std::size_t of_path = watches ? 2 : 1;
  for (std::size_t i = 0; watches && i < paths_.size(); ++i) {
    Result<void> watched = watch(*paths_[i], *sources[2 * i + 1], *sources[2 * i]);
    if (watched) continue;
    detach();
    return watched;
  }
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    paths_[i]->capture.store(sources[of_path * i].get(), std::memory_order_release);
  }
  return {};
}

void PathTaps::trace(std::span<const std::unique_ptr<capture::CaptureSource>> sources) {
  attached_ = true;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    paths_[i]->trace.store(sources[i].get(), std::memory_order_release);
  }
}

Result<void> PathTaps::watch(const QueuePath& path, capture::CaptureSource& received, capture::CaptureSource& offered) {
  Tap* const tap =
      taps_.emplace_back(std::make_unique<Tap>(Tap{.received = received, .offered = offered, .path = path})).get();
  WARPLINE_CHECK(keep({path.rx, true, rte_eth_add_rx_callback(path.rx.port, path.rx.queue, on_received, tap)}));
  WARPLINE_CHECK(keep({path.tx, false, rte_eth_add_tx_callback(path.tx.port, path.tx.queue, on_offered, tap)}));
  const auto leaves_by = [&path](const auto& other) { return other->tx == path.reply; };
  if (!path.responder || std::ranges::any_of(paths_, leaves_by)) return {};  // a path's own tap sees the answers there
  return keep({path.reply, false, rte_eth_add_tx_callback(path.reply.port, path.reply.queue, on_offered, tap)});
}

Result<void> PathTaps::keep(const Callback& callback) {
  if (callback.callback != nullptr) {
    callbacks_.push_back(callback);
    return {};
  }
  return environment_error("cannot capture all packets", rte_strerror(rte_errno),
                           "use a DPDK with RTE_ETHDEV_RXTX_CALLBACKS, or --capture-what dropped");
}

std::uint16_t PathTaps::on_received(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
                                    std::uint16_t /*most*/, void* tap) {
  if (count == 0) return 0;
  capture::CaptureSource& source = static_cast<Tap*>(tap)->received;
  const std::uint64_t now = ticks_now();
  for (std::uint16_t i = 0; i < count; ++i) {
    capture_mbuf(source, *mbufs[i], {port, queue}, capture::Direction::inbound, Verdict::forward, now);
  }
  return count;
}

std::uint16_t PathTaps::on_offered(std::uint16_t port, std::uint16_t queue, rte_mbuf** mbufs, std::uint16_t count,
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

void PathTaps::detach() {
  if (!std::exchange(attached_, false)) return;
  for (const auto& path : paths_) {
    path->capture.store(nullptr, std::memory_order_seq_cst);
    path->trace.store(nullptr, std::memory_order_seq_cst);
  }
  for (const auto& [at, receives, callback] : callbacks_) {
    receives ? rte_eth_remove_rx_callback(at.port, at.queue, callback)
             : rte_eth_remove_tx_callback(at.port, at.queue, callback);
  }
  leaving_.emplace(threads_);
  // A thread's processor may have begun to read for its next turn before others saw the end of one.
  turns_left_ = 2;
}

bool PathTaps::is_free() {
  if (leaving_ && leaving_->all_had_one() && --turns_left_ == 0) forget();
  return !attached_ && !leaving_;
}

void PathTaps::forget() {
  leaving_.reset();
  for (const Callback& callback : std::exchange(callbacks_, {})) {
    rte_free(const_cast<rte_eth_rxtx_callback*>(callback.callback));
  }
  taps_.clear();
}

void PathTaps::end() {
  detach();
  if (leaving_) forget();
}

}  // namespace warpline::datapath
