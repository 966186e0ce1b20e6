// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/call_rows.h"

#include <algorithm>

namespace warpline::rpc {

CallRows::CallRows(const Setup& setup)
    : setup_(setup), slots_(std::max(1U, std::min(setup.at_once, setup.rows))), failed_row_(setup.rows) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
}

void CallRows::begin(MessageHost& host, message::SessionId session, void (*ended)(void* context), void* context) {
  host_ = &host;
  session_ = session;
  ended_ = ended;
  context_ = context;
  advance();
}

void CallRows::advance() {
  if (over_) return;
  if (stop_.load(std::memory_order_acquire) && !cancelled_) {
    cancelled_ = true;
    for (const Slot& slot : slots_) {
      if (slot.used) (void)host_->cancel(slot.id);
    }
    if (failed_row_ == setup_.rows && next_row_ < setup_.rows) {
      failed_row_ = next_row_;
      failure_ = {.status = message::MessageStatus::cancelled};
    }
  }
  fill();
  finish();
}

/// Begins calls of the next rows.
void CallRows::fill() {
  const auto row_end = [](void* rows, std::uint64_t slot, const CallResult& result) {
    static_cast<CallRows*>(rows)->row_ended(static_cast<std::uint32_t>(slot), result);
  };
  while (!free_.empty() && next_row_ < setup_.rows && failed_row_ == setup_.rows) {
    const std::uint32_t index = free_.back();
    const std::size_t row = next_row_;
    Call call{.session = session_, .code = setup_.code, .priority = setup_.priority, .patience = setup_.patience};
    call.message = {setup_.requests + row * setup_.request_bytes, setup_.request_bytes, setup_.requests_on_gpu};
    if (setup_.response_bytes != 0)
      call.response = {setup_.responses + row * setup_.response_bytes, setup_.response_bytes, setup_.responses_on_gpu};
    const SubmittedCall submitted = host_->submit(call, {row_end, this, index});
    if (submitted.status != message::CallStatus::ok) return;  // no room: with the next end, or turn
    free_.pop_back();
    slots_[index] = {next_row_, submitted.id, true};
    ++next_row_;
    ++under_way_;
  }
}

/// Tells once that all is over.
void CallRows::finish() {
  if (over_ || under_way_ != 0 || (next_row_ < setup_.rows && failed_row_ == setup_.rows)) return;
  over_ = true;
  ended_(context_);
}

void CallRows::row_ended(std::uint32_t index, const CallResult& result) {
  Slot& slot = slots_[index];
  slot.used = false;
  free_.push_back(index);
  --under_way_;
  if (setup_.lengths != nullptr) setup_.lengths[slot.row] = result.length;
  if ((result.status != message::MessageStatus::ok || result.code != 0) && slot.row < failed_row_) {
    failed_row_ = slot.row;
    failure_ = result;
  }
  fill();
  finish();
}

}  // namespace warpline::rpc
