// SPDX-License-Identifier: Apache-2.0
#include "vnic/engine/copy_lane.h"

#include <cerrno>

namespace warpline::vnic {

int CopyLane::open(const rte_net_vnic_copy_engine& engine, rte_net_vnic_direction direction, std::uint16_t queue) {
  close();
  engine_ = &engine;
  lane_ = engine.open(engine.context, direction, queue);
  if (lane_ == nullptr) return -ENOMEM;
  refused_ = failed_ = noted_ = false;
  copies_ = 0;
  begin_ = end_ = submitted_ = landed_ = 0;
  at(end_) = {};
  return 0;
}

void CopyLane::close() {
  if (lane_ != nullptr) engine_->close(lane_);
  lane_ = nullptr;
}

void CopyLane::end_batch() {
  at(end_).landed_at = submitted_;
  ++end_;
  at(end_) = {};
  copies_ = 0;
  refused_ = noted_ = false;
}

bool CopyLane::submit() {
  if (failed_) return false;
  if (!noted_) return true;
  if (copies_ != 0) {
    const int status = engine_->submit(lane_, list_.data(), copies_);
    refused_ = status != 0;
    failed_ = refused_ && status != -EAGAIN;
    if (refused_) return false;
    ++submitted_;
  }
  end_batch();
  return true;
}

void CopyLane::look() {
  if (failed_ || begin_ == end_) return;
  const std::uint64_t landed = engine_->landed(lane_);
  if (landed == RTE_NET_VNIC_COPIES_LOST) {
    failed_ = true;
  } else {
    landed_ = landed;
  }
}

const CopyLane::Batch* CopyLane::lost() {
  if (begin_ == end_ && noted_) end_batch();
  return begin_ != end_ ? &at(begin_) : nullptr;
}

}  // namespace warpline::vnic
