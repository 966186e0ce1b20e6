// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/path_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace warpline::message {
namespace {

constexpr std::uint32_t kMostRemembered = 1024;  ///< paths without sessions, beyond what those with sessions leave
constexpr std::uint64_t kHashOfPath = 3;         ///< PeerGroups has 1 and 2
constexpr std::uint32_t kMostAsked = 16;         ///< sessions of a path, the last ones that came
/// So long after a session has left its window, if it was small, counts for half as much.
constexpr std::int64_t kWindowAges = 1'000'000'000;

/// Whether a session has something under way, or to be sent.
bool is_sending(const Session& session) {
  return session.in_flight_packets != 0 || any(session.replies, session.own) || has_high(session);
}

}  // namespace

PathTable::PathTable(const EndpointContext& endpoint, SessionTable& sessions, SipKey key)
    : endpoint_(endpoint),
      sessions_(sessions),
      paths_(sessions.size() + std::min(sessions.size(), kMostRemembered)),
      by_hash_(static_cast<std::uint32_t>(paths_.size())),
      key_(key) {}

std::uint64_t PathTable::hash_of(const PeerAddress& peer) const {
  std::array<std::uint64_t, 4> words{kHashOfPath, 0, 0, peer.scope};
  std::memcpy(words.data() + 1, peer.ip.data(), peer.ip.size());
  return siphash(key_, words);
}

void PathTable::begin(Path& path) {
  const EndpointConfig& config = endpoint_.config;
  path.mtu = MtuSearch(config.base_bytes, config.datagram_bytes, config.mtu_raise_time);
  path.rtt = RttEstimator{};
  path.window_bytes = 0;
}

std::uint32_t PathTable::enter(const PeerAddress& peer) {
  const std::uint64_t hash = hash_of(peer);
  std::uint32_t index = by_hash_.find(hash);
  if (index != kNone) {
    Path& path = paths_[index];
    if (path.first_session != kNone) return index;
    remove_unused(path);
    if (endpoint_.now().value - path.unused_since.value > kRemembered.value) begin(path);
    return index;
  }
  if (used_ < paths_.size()) {
    index = used_++;
  } else {  // there are more paths than sessions
    index = unused_first_;
    remove_unused(paths_[index]);
    by_hash_.erase(paths_[index].hash, index);
  }
  paths_[index] = Path{};
  paths_[index].hash = hash;
  begin(paths_[index]);
  by_hash_.insert(hash, index);
  return index;
}

void PathTable::join(Session& session) {
  session.path = enter(session.peer);
  Path& path = of(session);
  const std::uint32_t index = sessions_.index_of(session);
  session.path_before = kNone;
  session.path_next = path.first_session;
  if (path.first_session != kNone) sessions_[path.first_session].path_before = index;
  path.first_session = index;
  apply(path, session);
  inherit(path, session);
}

/// From the sessions that there are (ensemble sharing), or that were (temporal sharing): RFC 9040, section 4.
void PathTable::inherit(const Path& path, Session& session) const {
  if (!endpoint_.config.shares_paths || session.go_back_n) return;
  const RttEstimator* known = &path.rtt;
  std::uint32_t asked = 0;
  for (std::uint32_t index = session.path_next; index != kNone && asked < kMostAsked; ++asked) {
    const Session& other = sessions_[index];
    index = other.path_next;
    if (other.go_back_n || !other.rtt.known()) continue;
    known = &other.rtt;
    break;
  }
  if (known->known()) session.rtt = known->inherited();
}

double PathTable::initial_window(const Session& session) const {
  const double alone = endpoint_.config.cc.initial_window_bytes;
  if (!endpoint_.config.shares_paths || session.go_back_n) return alone;
  const Path& path = paths_[session.path];
  double under_way = 0;
  std::uint32_t begun = 0;
  std::uint32_t begin = 1;  // it itself
  std::uint32_t asked = 0;
  for (std::uint32_t index = path.first_session; index != kNone && asked < kMostAsked; ++asked) {
    const Session& other = sessions_[index];
    index = other.path_next;
    if (&other == &session || other.go_back_n || !is_sending(other)) continue;
    if (other.newest_acked == 0) {
      ++begin;
    } else {
      ++begun;
      under_way += other.allowed.window_bytes;
    }
  }
  double window = alone / begin;
  if (begun != 0) {
    window = std::min(window, under_way / (begun + begin));
  } else if (path.window_bytes != 0) {
    const double age = static_cast<double>(endpoint_.now().value - path.left_at.value) / kWindowAges;
    window = std::min(window, path.window_bytes * std::exp2(std::min(age, 64.0)) / begin);
  }
  return std::max<double>(window, session.datagram_bytes);
}

void PathTable::leave(Session& session) {
  end_probe(session);
  Path& path = of(session);
  if (session.newest_acked != 0 && session.rtt.known() && !session.go_back_n) {
    path.rtt = session.rtt;
    path.window_bytes = session.allowed.window_bytes;
    path.left_at = endpoint_.now();
  }
  (session.path_before == kNone ? path.first_session : sessions_[session.path_before].path_next) = session.path_next;
  if (session.path_next != kNone) sessions_[session.path_next].path_before = session.path_before;
  if (path.first_session == kNone) add_unused(session.path);
}

void PathTable::add_unused(std::uint32_t index) {
  Path& path = paths_[index];
  path.unused_since = endpoint_.now();
  path.unused_next = kNone;
  path.unused_before = unused_last_;
  (unused_last_ == kNone ? unused_first_ : paths_[unused_last_].unused_next) = index;
  unused_last_ = index;
}

void PathTable::remove_unused(const Path& path) {
  (path.unused_before == kNone ? unused_first_ : paths_[path.unused_before].unused_next) = path.unused_next;
  (path.unused_next == kNone ? unused_last_ : paths_[path.unused_next].unused_before) = path.unused_before;
}

void PathTable::apply(const Path& path, Session& session) const {
  if (session.go_back_n) {
    set_datagram_bytes(session, session.most_bytes, endpoint_.is_protected());
    session.base_bytes = session.most_bytes;
  } else {
    set_datagram_bytes(session, std::min<std::uint32_t>(session.most_bytes, path.mtu.bytes()),
                       endpoint_.is_protected());
    session.base_bytes =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(session.most_bytes, endpoint_.config.base_bytes));
  }
}

bool PathTable::seek(Session& session) {
  Path& path = of(session);
  const bool free = path.prober == kNone && session.confirmed && !session.go_back_n;
  if (!free || path.mtu.next(session.most_bytes, endpoint_.now()) == 0) return false;
  path.prober = sessions_.index_of(session);
  session.path_probe = true;
  return true;
}

std::uint32_t PathTable::probe_bytes(Session& session) {
  session.path_probe = false;
  Path& path = of(session);
  const std::uint32_t bytes = path.mtu.next(session.most_bytes, endpoint_.now());
  if (bytes == 0) path.prober = kNone;
  return bytes;
}

void PathTable::probe_arrived(Session& session, std::uint32_t bytes) {
  Path& path = of(session);
  if (path.mtu.arrived(bytes)) {
    for_each_session(path, [&](Session& each) { apply(path, each); });
  }
  end_probe(session);
}

void PathTable::probe_lost(Session& session, std::uint32_t bytes) {
  of(session).mtu.lost(bytes, endpoint_.now());
  end_probe(session);
}

void PathTable::end_probe(Session& session) {
  session.path_probe = false;
  if (of(session).prober == sessions_.index_of(session)) of(session).prober = kNone;
}

void PathTable::fall_back(const Session& session) {
  Path& path = of(session);
  path.mtu.black_hole(endpoint_.now());
  for_each_session(path, [&](Session& each) { apply(path, each); });
}

}  // namespace warpline::message
