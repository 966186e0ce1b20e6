// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "warpline/base/piece_lane.h"
#include "warpline/handoff/lanes/copy_lane.h"

namespace warpline::handoff {

/// Pieces that an engine of the burst ring works on: with CopyPieces or HashPieces.
template <Engine E>
class EngineLane final : public PieceLane {
 public:
  static_assert(kMostPieces <= CopyLane<E>::kMostCopies);

  /// `make_engine` as of CopyLane.
  template <typename F>
  [[nodiscard]] static Result<std::unique_ptr<PieceLane>> create(F&& make_engine) {
    WARPLINE_TRY(auto lane, CopyLane<E>::create(std::forward<F>(make_engine)));
    return std::unique_ptr<PieceLane>(new EngineLane(std::move(lane)));
  }

  [[nodiscard]] Result<void> start() override { return lane_->start(); }
  [[nodiscard]] bool submit(std::span<const Piece> batch) override {
    return lane_->submit(batch.data(), static_cast<std::uint32_t>(batch.size()));
  }
  [[nodiscard]] std::uint64_t landed() override { return lane_->landed(); }
  [[nodiscard]] std::optional<Error> failure() const override { return lane_->failure(); }
  void stop() override { lane_->stop(); }

 private:
  explicit EngineLane(std::unique_ptr<CopyLane<E>> lane) : lane_(std::move(lane)) {}

  std::unique_ptr<CopyLane<E>> lane_;
};

}  // namespace warpline::handoff
