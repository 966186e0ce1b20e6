// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pending_call.h"

namespace warpline::rpc {

const CallResult& PendingCall::wait() {
  ended_.wait(0, std::memory_order_acquire);
  pending_ = false;
  return result_;
}

void PendingCall::end(void* self, std::uint64_t, const CallResult& result) {
  auto& call = *static_cast<PendingCall*>(self);
  call.result_ = result;
  call.ended_.store(1, std::memory_order_release);
  call.ended_.notify_all();  // of an address: the object may be gone by now
}

}  // namespace warpline::rpc
