// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/worker.h"

#include <algorithm>

#include "warpline/base/give_way.h"

namespace warpline::service {

void MessageWorker::run() {
  Nanos idle_since = clock_.now();
  Turns turns(gives_way_);
  begin(idle_since);
  while (true) {
    const Nanos now = clock_.now();
    bool worked = false;
    if (!turn(now, worked) || transport_.failed()) break;
    if (worked) {
      idle_since = now;
      turns.end(true);
    } else if (now.value - idle_since.value > kPatience) {
      transport_.wait(now, std::min(endpoint_.next_deadline(), app_.next_turn()));
    }
  }
  (void)transport::transmit_from(endpoint_, transport_, clock_);
  done_.store(true, std::memory_order_release);
}

bool MessageWorker::turn(Nanos now, bool& worked) {
  if (transport::receive_into(endpoint_, transport_, now)) {
    app_.note_heard(now);
    worked = true;
  }
  std::size_t count = 0;
  do {
    if (!transport_.settled()) break;
    count = endpoint_.poll(events_);
    for (std::size_t i = 0; i < count; ++i) app_.handle(endpoint_, events_[i], now);
    worked = worked || count != 0;
  } while (count == events_.size());
  const bool goes_on = app_.turn(endpoint_, now);
  worked = transport::transmit_from(endpoint_, transport_, clock_) != 0 || worked;
  return goes_on;
}

}  // namespace warpline::service
