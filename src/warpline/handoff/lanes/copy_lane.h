// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/lanes/copy_pieces.h"

namespace warpline::handoff {

/// Batches of copies that an engine makes, in the order of their submission. One thread submits and asks.
template <Engine E>
class CopyLane {
 public:
  static constexpr std::uint32_t kBatches = 64;      ///< under way at most
  static constexpr std::uint16_t kMostCopies = 256;  ///< of a batch

  /// A lane whose engine is prepared. `make_engine(BurstRing&)` returns a std::unique_ptr<E>, which works with
  /// CopyPieces.
  template <typename F>
  [[nodiscard]] static Result<std::unique_ptr<CopyLane>> create(F&& make_engine) {
    WARPLINE_TRY(auto ring,
                 BurstRing::create({.slots = kBatches, .packets = kMostCopies, .segments = 2 * kMostCopies}));
    std::unique_ptr<E> engine = make_engine(*ring);
    WARPLINE_CHECK(engine->prepare());
    return std::unique_ptr<CopyLane>(new CopyLane(std::move(ring), std::move(engine)));
  }

  /// Lets the engine begin; what was submitted before waits until then.
  [[nodiscard]] Result<void> start() {
    WARPLINE_CHECK(engine_->start());
    started_ = true;
    return {};
  }
  [[nodiscard]] bool started() const { return started_; }

  /// `copies[0 .. count)`, at most kMostCopies, each with `to`, `from` and `length`. False: no room now.
  template <typename Copy>
  [[nodiscard]] bool submit(const Copy* copies, std::uint32_t count) {
    Burst* const batch = ring_->acquire();
    if (batch == nullptr) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      Segment* const pieces = batch->append(nullptr, 2);
      const auto length = static_cast<std::uint32_t>(copies[i].length);
      pieces[0].data = static_cast<std::uint8_t*>(copies[i].to);
      pieces[0].length = length;
      pieces[1].data = const_cast<std::uint8_t*>(static_cast<const std::uint8_t*>(copies[i].from));
      pieces[1].length = length;
    }
    ring_->publish();
    engine_->on_published();
    return true;
  }

  /// How many batches have landed.
  [[nodiscard]] std::uint64_t landed() {
    for (; ring_->completed() != nullptr; ++landed_) ring_->release();
    return landed_;
  }
  [[nodiscard]] std::optional<Error> failure() const { return engine_->failure(); }
  /// Ends the engine, whatever is in flight. Its memory stays until this is destroyed.
  void stop() {
    engine_->stop(Nanos{0});
    stopped_.store(true, std::memory_order_release);
  }
  /// Whether nothing more lands. Any thread.
  [[nodiscard]] bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  CopyLane(std::unique_ptr<BurstRing> ring, std::unique_ptr<E> engine)
      : ring_(std::move(ring)), engine_(std::move(engine)) {}

  std::unique_ptr<BurstRing> ring_;
  std::unique_ptr<E> engine_;  ///< ends before its ring
  std::uint64_t landed_ = 0;
  bool started_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace warpline::handoff
