// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/kept/stream_inbox.h"

namespace warpline::service {

std::shared_ptr<KeptBytes> KeptConnection::take() {
  if (!home_) return nullptr;
  const StreamHome::Piece piece = home_->take(place_);
  if (piece.size != 0) return std::make_shared<KeptBytes>(home_, place_, piece);
  if (piece.state == stream::ConnectionState::open) return nullptr;
  state_ = piece.state;
  std::exchange(home_, nullptr)->let_go(place_, true);
  return nullptr;
}

void KeptConnection::close() {
  if (home_) std::exchange(home_, nullptr)->let_go(place_, false);
}

Result<std::shared_ptr<StreamInbox>> StreamInbox::make() {
  WARPLINE_TRY(auto bell, transport::WakeUp::make());
  return std::shared_ptr<StreamInbox>(new StreamInbox(std::move(bell)));
}

void StreamInbox::add(std::shared_ptr<StreamHome> home) { homes_.push_back(std::move(home)); }

void StreamInbox::take(std::vector<ConnectionNews>& into) {
  for (std::size_t i = 0; i < homes_.size(); ++i) {
    while (const auto news = homes_[i]->news()) {
      into.push_back({.number = news->number * homes_.size() + i,
                      .connection = news->begins ? std::make_unique<KeptConnection>(homes_[i], news->place) : nullptr});
    }
  }
}

void StreamInbox::end() {
  ended_.store(true, std::memory_order_release);
  bell_->wake();
}

}  // namespace warpline::service
