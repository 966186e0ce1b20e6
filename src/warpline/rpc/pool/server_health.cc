// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/server_health.h"

#include "warpline/base/units.h"

namespace warpline::rpc {

void ServerHealth::connected() {
  if (state_ != ServerState::connecting) return;
  state_ = times_out_ == 0 ? ServerState::up : ServerState::trial;
  failures_ = 0;
}

void ServerHealth::lost(Nanos now, Random& random) {
  if (state_ != ServerState::left_out) leave_out(now, random);
}

void ServerHealth::answered() {
  failures_ = 0;
  if (state_ == ServerState::trial) state_ = ServerState::up;
  if (state_ == ServerState::up) times_out_ = 0;
}

void ServerHealth::failed(Nanos now, Random& random) {
  ++failures_;
  const bool out = state_ == ServerState::trial || (state_ == ServerState::up && failures_ >= settings_.failures);
  if (out) leave_out(now, random);
}

void ServerHealth::leaves() {
  if (state_ == ServerState::up || state_ == ServerState::trial) state_ = ServerState::leaving;
}

void ServerHealth::leave_out(Nanos now, Random& random) {
  state_ = ServerState::left_out;
  due_ = time_sum(now, wait_after(settings_.back_off, times_out_++, random));
}

}  // namespace warpline::rpc
