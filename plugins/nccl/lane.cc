// SPDX-License-Identifier: Apache-2.0
#include "nccl/lane.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "nccl/log.h"
#include "nccl/wire.h"
#include "warpline/transport/wake_up.h"

namespace warpline::nccl {
namespace {

constexpr std::uint32_t kMaxSessions = 2048;  ///< of a lane: as many connections
constexpr std::uint32_t kMaxMessages = 1 << 14;
constexpr std::uint32_t kLeastWindow = 256 << 10;
constexpr std::uint32_t kMostWindow = 8 << 20;
constexpr double kFirstPackets = 16;  ///< of a new session
constexpr Nanos kTendEach{1'000'000'000};

message::EndpointConfig config_of(const NicFacts& on, const Settings& settings, const LaneTransport& carrier) {
  message::EndpointConfig config;
  const std::uint32_t datagram_bytes = carrier.datagram_bytes;
  const std::uint32_t window = std::clamp(carrier.buffer_bytes / 4, kLeastWindow, kMostWindow);
  config.max_sessions = kMaxSessions;
  config.max_messages = kMaxMessages;
  config.max_queued = kMaxMessages / 2;
  config.receive_bytes = 1 << 20;  // data lies elsewhere, and what else is sent is short
  config.max_message_bytes = kMaxPieceBytes + (64 << 10);
  config.receive_window = window;
  config.datagram_bytes = datagram_bytes;
  if (on.local) config.base_bytes = datagram_bytes;
  config.cc.kind = settings.congestion.value_or(on.local ? message::CcKind::none : message::CcKind::swift);
  config.cc.initial_window_bytes = kFirstPackets * datagram_bytes;
  config.cc.max_window_bytes = window;
  // A peer is asked after a quarter of the timeout, and has three to answer.
  config.keepalive = {settings.timeout.value / 4};
  config.peer_timeout = {settings.timeout.value / 4 * 3};
  config.message_timeout = {settings.timeout.value * 4};
  config.connect_timeout = settings.timeout;
  return config;
}

}  // namespace

struct Lane::Opening {
  Lane& lane;
  Path& path;
  message::PeerAddress peer;
  std::array<std::uint8_t, message::kInlineBytes> first{};
  std::uint32_t first_length = 0;
};

struct Lane::Closing {
  Lane& lane;
  Path& path;
  std::atomic<int>& left;
};

Lane::Lane(std::shared_ptr<NicTransports> transports, std::uint32_t number, Nanos timeout, Joins& joins)
    : joins_(joins),
      timeout_(timeout),
      transports_(std::move(transports)),
      number_(number),
      bells_(2 * kMaxSessions),
      places_(kMaxSessions) {
  stalled_.reserve(kMaxSessions);
  again_.reserve(kMaxSessions);
}

Result<std::unique_ptr<Lane>> Lane::open(const NicFacts& on, std::shared_ptr<NicTransports> transports,
                                         const Settings& settings, std::uint32_t number, Joins& joins) {
  const LaneTransport carrier = transports->of_lane(number);
  std::unique_ptr<Lane> lane(new Lane(std::move(transports), number, settings.timeout, joins));
  lane->port_ = carrier.port;
  rpc::MessageHost::Settings host;
  host.endpoint = config_of(on, settings, carrier);
  host.endpoint.buffers = {lane.get(), place, [](void*, message::MutableBuffer) {}};
  host.poll_for = settings.poll_for;
  WARPLINE_TRY(rpc::MessageHost opened, rpc::MessageHost::over(carrier.transport, host));
  lane->host_.emplace(std::move(opened));
  lane->host_->join(*lane);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  try {
    lane->thread_ = std::thread([to = lane.get()] { to->work(); });
    (void)::pthread_setname_np(lane->thread_.native_handle(), fmt::format("warpline-{}", number).c_str());
  } catch (const std::system_error& error) {
    failed = error.code().value();
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0)
    return environment_error("thread of a lane", std::strerror(failed), "raise `ulimit -u`, or WARPLINE_NCCL_LANES=1");
  return lane;
}

Lane::~Lane() {
  if (thread_.joinable()) {
    host_->stop();
    thread_.join();
  }
}

void Lane::work() {
  transports_->enter();
  host_->run();
  transports_->leave();
}

void Lane::post(void (*task)(void* context), void* context) {
  while (!host_->post(task, context)) std::this_thread::yield();  // a thousand places are taken: it is at work
}

void Lane::ring(Path& path) {
  if (!path.rung.exchange(true, std::memory_order_acq_rel)) (void)bells_.push(&path);  // has room for all paths
  host_->wake_up().wake();
}

void Lane::open_path(Path& path, const SocketAddress& peer, std::span<const std::uint8_t> first) {
  auto opening = std::make_unique<Opening>(Opening{*this, path, message::peer_address(peer)});
  opening->first_length = static_cast<std::uint32_t>(std::min(first.size(), opening->first.size()));
  std::copy_n(first.begin(), opening->first_length, opening->first.begin());
  const auto task = [](void* context) {
    const std::unique_ptr<Opening> own(static_cast<Opening*>(context));
    own->lane.opened(*own);
  };
  post(task, opening.release());
}

void Lane::opened(Opening& opening) {
  message::Endpoint& endpoint = host_->endpoint();
  const Nanos now = host_->now();
  const message::Opened session = endpoint.connect(opening.peer, {}, now);
  if (session.status != message::CallStatus::ok) {
    opening.path.lost(message::LossReason::peer_full);
    return;
  }
  put(session.session, &opening.path, true);
  (void)send(opening.path, {opening.first.data(), opening.first_length},
             {.code = static_cast<std::uint16_t>(Code::join), .copy = true}, now);
}

void Lane::close_path(Path& path, std::atomic<int>& left) {
  const auto task = [](void* context) {
    const std::unique_ptr<Closing> own(static_cast<Closing*>(context));
    own->lane.closed(*own);
  };
  post(task, new Closing{*this, path, left});
}

void Lane::closed(const Closing& closing) {
  Path& path = closing.path;
  path.closing = &closing.left;
  if (path.session) (void)host_->endpoint().close(*path.session, host_->now());
  end_if_over(path);
}

/// A path that is being closed is let go when no message of its own is under way, whose bytes are somebody else's, and
/// no bell of it is in the queue.
void Lane::end_if_over(Path& path) {
  if (path.closing == nullptr || path.under_way != 0 || path.rung.load(std::memory_order_acquire)) return;
  if (path.session) places_[path.session->index].path = nullptr;
  if (path.stalled) std::erase(stalled_, &path);
  std::atomic<int>& left = *path.closing;
  if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_all();  // from here on the path may be gone
}

void Lane::put(const message::SessionId& session, Path* path, bool own) {
  places_[session.index] = {session.generation, path, own};
  if (path != nullptr) path->session = session;
}

Path* Lane::path_of(const message::SessionId& session) const {
  const Place& place = places_[session.index];
  return place.generation == session.generation ? place.path : nullptr;
}

bool Lane::send(Path& path, message::ConstBuffer bytes, const message::SendOptions& options, Nanos now) {
  if (!path.session) return true;  // it is lost, and has said so
  const message::Submitted sent = host_->endpoint().send(*path.session, bytes, options, now);
  if (sent.status == message::CallStatus::ok) {
    ++path.under_way;
    return true;
  }
  if (sent.status != message::CallStatus::no_slot && sent.status != message::CallStatus::no_memory) return true;
  if (!path.stalled) {
    path.stalled = true;
    stalled_.push_back(&path);
  }
  return false;
}

message::MutableBuffer Lane::place(void* context, message::SessionId session, std::uint16_t code,
                                   std::uint32_t length) {
  Path* const path = static_cast<Lane*>(context)->path_of(session);
  return path == nullptr || path->closing != nullptr ? message::MutableBuffer{} : path->place(code, length);
}

bool Lane::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  Path* const path = path_of(event.session);
  switch (event.kind) {
    case message::EventKind::accepted:
      put(event.session, nullptr, false);
      newcomers_.push_back({event.session, {now.value + timeout_.value}});
      break;
    case message::EventKind::message:
      if (path == nullptr) {
        first_message(endpoint, event, now);
      } else if (path->closing == nullptr) {
        path->take(endpoint, event, now);
      }
      (void)endpoint.release(event.id, now);
      break;
    case message::EventKind::sent:
      if (path == nullptr) break;
      --path->under_way;
      path->sent(event);
      end_if_over(*path);
      break;
    case message::EventKind::lost:
      lose(endpoint, event, now);
      break;
    default:
      break;
  }
  return true;
}

void Lane::first_message(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  const Place& place = places_[event.session.index];
  if (place.own || place.generation != event.session.generation) return;  // of a path that is gone
  Path* const path = event.code == static_cast<std::uint16_t>(Code::join)
                         ? joins_.join(*this, endpoint.facts(event.session).peer, {event.data, event.length})
                         : nullptr;
  if (path == nullptr) {
    (void)endpoint.close(event.session, now);
    return;
  }
  put(event.session, path, false);
  const auto welcome = write_welcome(path->welcome());
  (void)send(*path, {welcome.data(), welcome.size()}, {.code = static_cast<std::uint16_t>(Code::welcome), .copy = true},
             now);
}

void Lane::lose(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  Place& place = places_[event.session.index];
  if (place.generation != event.session.generation) return;
  Path* const path = std::exchange(place.path, nullptr);
  if (place.own) (void)endpoint.forget(event.session, now);
  if (path == nullptr) return;
  path->session.reset();
  if (path->closing == nullptr) path->lost(event.reason);
  end_if_over(*path);
}

bool Lane::advance(message::Endpoint& endpoint, bool moved, Nanos now) {
  bool worked = false;
  if (number_ == 0 && now >= next_tending_) {
    transports_->tend(now);
    next_tending_ = {now.value + kTendEach.value};
  }
  for (Path* path = nullptr; bells_.pop(path);) {
    (void)path->rung.exchange(false, std::memory_order_acq_rel);
    if (path->closing == nullptr && !path->stalled) path->work(endpoint, now);
    end_if_over(*path);
    worked = true;
  }
  if (moved && !stalled_.empty()) {
    again_.swap(stalled_);
    for (Path* const path : again_) {
      path->stalled = false;
      if (path->closing == nullptr) path->work(endpoint, now);
    }
    again_.clear();
  }
  while (!newcomers_.empty()) {
    const Newcomer& first = newcomers_.front();
    const Place& place = places_[first.session.index];
    const bool same = place.generation == first.session.generation;
    if (same && place.path == nullptr && first.until > now) break;
    if (same && place.path == nullptr) (void)endpoint.close(first.session, now);
    newcomers_.pop_front();
  }
  return worked;
}

Nanos Lane::next_deadline() const { return newcomers_.empty() ? message::kNever : newcomers_.front().until; }

}  // namespace warpline::nccl
