// SPDX-License-Identifier: Apache-2.0
#include "sim/applications/bulk_application.h"

#include "sim/host.h"

namespace warpline::sim {

BulkApplication::BulkApplication(const BulkPlan& plan)
    : plan_(plan),
      request_(plan.request_bytes),
      answer_(plan.answer_bytes),
      completed_by_(plan.servers),
      rooms_(plan.at_once, std::vector<std::uint8_t>(plan.answer_bytes)),
      asked_at_(plan.at_once) {}

void BulkApplication::start(Host& host) {
  host_ = &host;
  for (std::uint32_t i = 0; plan_.at_once > 0 && i < plan_.servers; ++i) {
    const message::PeerAddress peer = address_of_host(plan_.server + (plan_.one_server ? 0 : i));
    sessions_.push_back(host.endpoint().connect(peer, {.context = i}, host.clock()).session);
  }
}

void BulkApplication::ask_all(std::uint32_t server) {
  for (std::uint32_t slot = server; slot < plan_.at_once; slot += plan_.servers) ask(slot);
}

void BulkApplication::ask(std::uint32_t slot) {
  if (plan_.before_request) plan_.before_request(asked_);
  ++asked_;
  asked_at_[slot] = host_->now();
  const message::Submitted submitted =
      host_->endpoint().request(sessions_[slot % plan_.servers], {request_.data(), plan_.request_bytes},
                                {rooms_[slot].data(), plan_.answer_bytes}, {.context = slot}, host_->clock());
  if (submitted.status != message::CallStatus::ok) ++failed_;
}

void BulkApplication::handle(const message::MessageEvent& event) {
  switch (event.kind) {
    case message::EventKind::connected:
      if (event.context + 1 == plan_.servers && plan_.last_at > host_->now()) {
        host_->wake_at(plan_.last_at, event.context);
      } else {
        ask_all(static_cast<std::uint32_t>(event.context));
      }
      break;
    case message::EventKind::request:
      if (host_->endpoint().respond(event.id, {answer_.data(), plan_.answer_bytes}, {}, host_->clock()) !=
          message::CallStatus::ok) {
        ++failed_;
      }
      break;
    case message::EventKind::response: {
      const auto slot = static_cast<std::uint32_t>(event.context);
      if (event.status != message::MessageStatus::ok) {
        ++failed_;
        break;
      }
      ++completed_;
      ++completed_by_[slot % plan_.servers];
      latencies_.push_back(host_->now() - asked_at_[slot]);
      ask(slot);
      break;
    }
    case message::EventKind::lost:
      ++failed_;
      break;
    default:
      break;
  }
}

void BulkApplication::forget_statistics() {
  completed_ = 0;
  completed_by_.assign(plan_.servers, 0);
  failed_ = 0;
  latencies_.clear();
}

}  // namespace warpline::sim
