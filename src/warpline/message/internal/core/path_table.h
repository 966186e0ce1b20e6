// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/large_vector.h"
#include "warpline/base/secrets/siphash.h"
#include "warpline/base/time/rtt_estimator.h"
#include "warpline/message/internal/core/endpoint_context.h"
#include "warpline/message/internal/core/session_table.h"
#include "warpline/message/internal/parts/hash_index.h"
#include "warpline/message/internal/parts/mtu_search.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// What is known of the way to one address, whatever the port: of all sessions that go there, and for a while after the
/// last of them (RFC 9040).
struct Path {
  MtuSearch mtu;
  RttEstimator rtt;                     ///< of the last session that has left and knew one
  double window_bytes = 0;              ///< that its congestion control allowed; 0: none
  Nanos left_at;                        ///< when it did
  std::uint64_t hash = 0;               ///< of the address
  std::uint32_t first_session = kNone;  ///< by Session::path_next
  std::uint32_t prober = kNone;         ///< the session that has a probe under way, or is to send one
  std::uint32_t unused_next = kNone;    ///< PathTable's, as the next
  std::uint32_t unused_before = kNone;
  Nanos unused_since;
};

/// The paths of established sessions, and those used last. Only who has proven an address has one: strangers cannot
/// make the table forget.
class PathTable {
 public:
  PathTable(const EndpointContext& endpoint, SessionTable& sessions, SipKey key);

  /// A session with Session::peer is established: its datagrams are as long as is known to pass, up to its
  /// `most_bytes`. One of go-back-n does not look, and its datagrams are as long as they may be.
  void join(Session& session);
  void leave(Session& session);

  /// The window with which the session begins, or begins again after a pause: of what a session alone may have its
  /// share among those that begin, but no more than its share among those that are under way, or than the path bore for
  /// the session before it.
  [[nodiscard]] double initial_window(const Session& session) const;

  [[nodiscard]] Path& of(const Session& session) { return paths_[session.path]; }

  /// True if the session is to send a probe now, Session::path_probe, which it was not before.
  [[nodiscard]] bool seek(Session& session);
  /// How long a probe of the session's is to be now; 0: none, it is over.
  [[nodiscard]] std::uint32_t probe_bytes(Session& session);
  /// A probe of so many bytes has arrived, or is lost.
  void probe_arrived(Session& session, std::uint32_t bytes);
  void probe_lost(Session& session, std::uint32_t bytes);
  /// The session has no probe under way any more, nor is it to send one.
  void end_probe(Session& session);

  /// The session's longest packets vanish: from here on those of all on its path are as short as the base.
  void fall_back(const Session& session);

  /// Calls fn(Session&) for all sessions of a path.
  template <typename Fn>
  void for_each_session(const Path& path, Fn&& fn) {
    for (std::uint32_t index = path.first_session; index != kNone;) {
      Session& session = sessions_[index];
      index = session.path_next;
      fn(session);
    }
  }

 private:
  /// RFC 9040, section 6: a path may have changed meanwhile.
  static constexpr Nanos kRemembered{600'000'000'000};

  [[nodiscard]] std::uint64_t hash_of(const PeerAddress& peer) const;
  [[nodiscard]] std::uint32_t enter(const PeerAddress& peer);
  void begin(Path& path);
  void apply(const Path& path, Session& session) const;
  void inherit(const Path& path, Session& session) const;
  void add_unused(std::uint32_t index);
  void remove_unused(const Path& path);

  const EndpointContext& endpoint_;
  SessionTable& sessions_;
  LargeVector<Path> paths_;
  HashIndex by_hash_;
  SipKey key_;
  std::uint32_t used_ = 0;              ///< paths that ever were
  std::uint32_t unused_first_ = kNone;  ///< without sessions, the one used last at the end
  std::uint32_t unused_last_ = kNone;
};

}  // namespace warpline::message
