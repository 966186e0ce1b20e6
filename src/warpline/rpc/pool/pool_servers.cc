// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/pool_servers.h"

#include <algorithm>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/rpc/pool/two_choices.h"

namespace warpline::rpc {

PoolServers::PoolServers(std::span<const SocketAddress> addresses, const ServerPoolSettings& settings,
                         std::uint64_t seed)
    : size_(addresses.size()),
      servers_(std::make_unique<Server[]>(addresses.size())),
      sessions_(settings.sessions),
      calls_per_session_(settings.calls_per_session),
      back_off_(settings.health.back_off),
      on_change_(settings.on_change),
      random_(seed) {
  for (std::size_t i = 0; i < size_; ++i) {
    servers_[i].address = addresses[i];
    servers_[i].health.emplace(settings.health);
    servers_[i].sessions.resize(2 * (std::size_t{settings.sessions} + 1));
  }
  up_.reserve(size_);
  trials_.reserve(size_);
}

/// False: the endpoint has no place for one.
bool PoolServers::open(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now) {
  const message::Opened opened = endpoint.connect(message::peer_address(server.address), {}, now);
  if (opened.status != message::CallStatus::ok) return false;
  server.sessions[session] = {.id = opened.session, .there = true};
  return true;
}

/// Sends the hello that decides whether the server is there.
void PoolServers::ask(message::Endpoint& endpoint, Server& server, Nanos now) {
  const auto free = std::ranges::find(server.sessions, false, &Session::there);
  server.health->connect();
  server.asking = static_cast<std::size_t>(free - server.sessions.begin());
  const bool asked = free != server.sessions.end() && open(endpoint, server, server.asking, now);
  if (!asked) server.health->lost(now, random_);
  show(endpoint, server, now);
}

/// Opens the sessions that a server lacks.
void PoolServers::fill(message::Endpoint& endpoint, Server& server, Nanos now) {
  const auto in_use = [](const Session& session) { return session.there && !session.retired; };
  auto count = static_cast<std::uint32_t>(std::ranges::count_if(server.sessions, in_use));
  server.fill_at = message::kNever;
  for (std::size_t i = 0; i < server.sessions.size() && count < sessions_; ++i) {
    if (server.sessions[i].there) continue;
    if (!open(endpoint, server, i, now)) return fill_later(server, now);
    ++count;
  }
}

/// A further session was refused, or there is no place for one: other sessions of the server do until there is.
void PoolServers::fill_later(Server& server, Nanos now) {
  if (server.fill_at == message::kNever)
    server.fill_at = time_sum(now, wait_after(back_off_, server.refused++, random_));
}

bool PoolServers::advance(message::Endpoint& endpoint, Nanos now) {
  if (due_ > now || closed_) return false;
  for (Server& server : std::span(servers_.get(), size_)) {
    const ServerState state = server.health->state();
    const bool first = state == ServerState::connecting && server.asking == kNobody;
    if (first || (state == ServerState::left_out && server.health->due() <= now)) ask(endpoint, server, now);
    if (state == ServerState::up && server.fill_at <= now) fill(endpoint, server, now);
  }
  sort(now);
  return true;
}

bool PoolServers::handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) {
  if (event.kind != message::EventKind::connected && event.kind != message::EventKind::lost) return false;
  for (Server& server : std::span(servers_.get(), size_)) {
    for (std::size_t i = 0; i < server.sessions.size(); ++i) {
      if (!server.sessions[i].there || server.sessions[i].id != event.session) continue;
      if (event.kind == message::EventKind::connected) {
        connected(endpoint, server, i, now);
      } else {
        lost(endpoint, server, i, now);
      }
      return true;
    }
  }
  return false;
}

void PoolServers::connected(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now) {
  server.sessions[session].open = true;
  if (session == server.asking) server.health->connected();
  const auto in_use = [](const Session& each) { return each.open && !each.retired; };
  if (std::ranges::count_if(server.sessions, in_use) >= sessions_) server.refused = 0;
  show(endpoint, server, now);
}

void PoolServers::lost(message::Endpoint& endpoint, Server& server, std::size_t session, Nanos now) {
  const Session was = server.sessions[session];
  server.sessions[session] = {};
  (void)endpoint.forget(was.id, now);
  const ServerState state = server.health->state();
  // While it is being asked only the answer counts, and a further session that it does not want is no failure.
  const bool counts = state == ServerState::connecting ? session == server.asking : was.open;
  if (counts && !was.retired) server.health->lost(now, random_);
  show(endpoint, server, now);
  if (was.open || was.retired || server.health->state() != ServerState::up) return;
  fill_later(server, now);
  sort(now);
}

/// What it has is ended in peace; when it gets calls again, then by sessions that are new.
void PoolServers::retire(message::Endpoint& endpoint, Server& server, Nanos now) {
  for (Session& session : server.sessions) {
    if (!session.there || session.retired) continue;
    session.retired = true;
    if (session.calls == 0) (void)endpoint.close(session.id, now);
  }
}

void PoolServers::close(message::Endpoint& endpoint, Nanos now) {
  closed_ = true;
  for (const Server& server : std::span(servers_.get(), size_)) {
    for (const Session& session : server.sessions) {
      if (session.there) (void)endpoint.close(session.id, now);
    }
  }
}

/// Does what follows from the server's state, if that is another one than before.
void PoolServers::show(message::Endpoint& endpoint, Server& server, Nanos now) {
  // What goes away is looked for again, as any that is gone, when its calls have ended.
  if (server.health->state() == ServerState::leaving && server.calls.load(std::memory_order_relaxed) == 0)
    server.health->lost(now, random_);
  const ServerState before = server.shown.load(std::memory_order_relaxed);
  const ServerState state = server.health->state();
  if (state == before) return;
  server.shown.store(state, std::memory_order_relaxed);
  if (state == ServerState::left_out) server.times_left_out.add(1);
  if (state == ServerState::trial) server.on_trial = false;
  if (state == ServerState::up) fill(endpoint, server, now);
  if (state == ServerState::left_out || state == ServerState::leaving) retire(endpoint, server, now);
  sort(now);
  const auto number = static_cast<std::size_t>(&server - servers_.get());
  if (on_change_ && !closed_) on_change_({.server = number, .from = before, .to = state});
}

/// Makes what is looked at often out of all servers' states.
void PoolServers::sort(Nanos now) {
  up_.clear();
  trials_.clear();
  due_ = message::kNever;
  bool hope = false;
  for (std::size_t i = 0; i < size_; ++i) {
    const ServerHealth& health = *servers_[i].health;
    hope = hope || health.untried();
    if (health.state() == ServerState::up) {
      up_.push_back(i);
      due_ = std::min(due_, servers_[i].fill_at);
    }
    if (health.state() == ServerState::trial) trials_.push_back(i);
    if (health.state() == ServerState::left_out) due_ = std::min(due_, health.due());
    if (health.state() == ServerState::connecting && servers_[i].asking == kNobody) due_ = {};
  }
  if (hope || !up_.empty() || !trials_.empty()) {
    nobody_since_ = message::kNever;
  } else if (nobody_since_ == message::kNever) {
    nobody_since_ = now;
  }
}

/// The session with fewest calls; kNobody if none has room.
std::size_t PoolServers::room(const Server& server) const {
  std::size_t best = kNobody;
  for (std::size_t i = 0; i < server.sessions.size(); ++i) {
    const Session& session = server.sessions[i];
    if (!session.open || session.retired || session.full || session.calls >= calls_per_session_) continue;
    if (best == kNobody || session.calls < server.sessions[best].calls) best = i;
  }
  return best;
}

std::optional<PoolServers::Place> PoolServers::place(std::size_t number, std::size_t except) const {
  if (number == except) return std::nullopt;
  const std::size_t session = room(servers_[number]);
  if (session == kNobody) return std::nullopt;
  return Place{number, session, servers_[number].health->state() == ServerState::trial};
}

std::optional<PoolServers::Place> PoolServers::choose(std::size_t except) {
  for (const std::size_t number : trials_) {
    if (servers_[number].on_trial) continue;
    if (const std::optional<Place> found = place(number, except)) return found;
  }
  const auto load = [&](std::size_t number) { return servers_[number].calls.load(std::memory_order_relaxed); };
  const std::size_t chosen = choose_of_two(up_.size(), random_, [&](std::size_t i) { return load(up_[i]); });
  if (chosen == kNoChoice) return std::nullopt;
  if (const std::optional<Place> found = place(up_[chosen], except)) return found;
  // It has no room, or must not be: whichever has fewest.
  std::optional<Place> best;
  for (const std::size_t number : up_) {
    const std::optional<Place> found = place(number, except);
    if (found && (!best || load(number) < load(best->server))) best = found;
  }
  return best;
}

void PoolServers::look_again() {
  if (!std::exchange(full_without_calls_, false)) return;
  for (Server& server : std::span(servers_.get(), size_)) {
    for (Session& session : server.sessions) session.full = session.full && session.calls != 0;
  }
}

message::SessionId PoolServers::session(const Place& place) const {
  return servers_[place.server].sessions[place.session].id;
}

void PoolServers::begin(const Place& place) {
  Server& server = servers_[place.server];
  server.calls.store(server.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ++server.sessions[place.session].calls;
  if (place.trial) server.on_trial = true;
}

void PoolServers::end(message::Endpoint& endpoint, const Place& place, AttemptEnd end, Nanos now) {
  Server& server = servers_[place.server];
  Session& session = server.sessions[place.session];
  server.calls.store(server.calls.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  --session.calls;
  session.full = false;
  if (place.trial) server.on_trial = false;
  switch (end) {
    case AttemptEnd::answered:
      server.answered.add(1);
      server.health->answered();
      break;
    case AttemptEnd::failed:
      server.failed.add(1);
      server.health->failed(now, random_);
      break;
    case AttemptEnd::lost:
      server.failed.add(1);
      refuse(endpoint, place, message::CallStatus::unknown_session, now);
      break;
    case AttemptEnd::leaving:
      server.health->leaves();
      break;
    case AttemptEnd::other:
      break;
  }
  if (session.retired && session.calls == 0) (void)endpoint.close(session.id, now);
  show(endpoint, server, now);
}

void PoolServers::refuse(message::Endpoint& endpoint, const Place& place, message::CallStatus status, Nanos now) {
  Server& server = servers_[place.server];
  Session& session = server.sessions[place.session];
  session.full = true;
  full_without_calls_ = full_without_calls_ || session.calls == 0;
  if (status == message::CallStatus::going_away) {
    server.health->leaves();
    show(endpoint, server, now);
  }
  if (status != message::CallStatus::unknown_session || session.retired) return;
  // It ended; the event that says so comes after those of its messages.
  session.retired = true;
  if (server.health->state() != ServerState::connecting) server.health->lost(now, random_);
  show(endpoint, server, now);
}

ServerFacts PoolServers::facts(std::size_t number) const {
  const Server& server = servers_[number];
  return {.address = server.address,
          .state = server.shown.load(std::memory_order_relaxed),
          .calls = server.calls.load(std::memory_order_relaxed),
          .answered = server.answered.get(),
          .failed = server.failed.get(),
          .times_left_out = server.times_left_out.get()};
}

}  // namespace warpline::rpc
