// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "nccl/nic.h"
#include "nccl/settings.h"
#include "nccl/wire.h"
#include "warpline/base/mpsc_ring.h"
#include "warpline/base/result.h"
#include "warpline/message/endpoint.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/message_host.h"

namespace warpline::nccl {

class Lane;

/// One session of a connection, on one lane. What is virtual is called by the lane's thread.
class Path {
 public:
  explicit Path(Lane& on) : lane(on) {}
  virtual ~Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  /// Does what other threads have rung for, as far as the endpoint has room.
  virtual void work(message::Endpoint& endpoint, Nanos now) = 0;
  /// A one-way message of the peer; the lane gives it back.
  virtual void take(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) = 0;
  /// The end of a message of its own.
  virtual void sent(const message::MessageEvent& event) = 0;
  /// The session has ended, and all its messages before it.
  virtual void lost(message::LossReason reason) = 0;
  /// What a receiver's path tells the sender when it joins.
  [[nodiscard]] virtual Welcome welcome() const { return {}; }
  /// Where a message of the peer is to lie; null: nowhere yet.
  virtual message::MutableBuffer place(std::uint16_t code, std::uint32_t length) = 0;

  Lane& lane;
  std::atomic<bool> rung{false};  ///< the lane has it in its queue, or is about to

  // The lane's thread's own.
  std::optional<message::SessionId> session;  ///< while there is one
  std::uint32_t under_way = 0;                ///< messages of its own that have not ended
  bool stalled = false;                       ///< waits for room in the endpoint
  std::atomic<int>* closing = nullptr;        ///< that is counted down when nothing of it is left here
};

/// Who is asked about sessions that peers open.
class Joins {
 public:
  virtual ~Joins() = default;
  /// Returns the path that the session is from now on, by its first message; null: nobody expects it. By the lane's
  /// thread.
  virtual Path* join(Lane& lane, const message::PeerAddress& from, std::span<const std::uint8_t> message) = 0;
};

/// A thread with an endpoint over one of a NIC's transports, which moves the data of many connections: each of these
/// has one path here at most. It polls while there is something to do, and then sleeps.
class Lane final : public rpc::LoopPart {
 public:
  /// `number`: in the NIC. `joins` outlives it. Environment error: no thread to be had.
  [[nodiscard]] static Result<std::unique_ptr<Lane>> open(const NicFacts& on, std::shared_ptr<NicTransports> transports,
                                                          const Settings& settings, std::uint32_t number, Joins& joins);
  ~Lane() override;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// What keeps its NIC's datagrams from passing, if it is known. Any thread.
  [[nodiscard]] std::optional<Error> trouble() const { return transports_->trouble(); }
  [[nodiscard]] const message::EndpointCounters& counters() { return host_->endpoint().counters(); }

  // By any thread.
  /// Has the lane's thread call path.work() soon.
  void ring(Path& path);
  /// Has it open a session, whose first message is a copy of `first`. The path lives until it is closed.
  void open_path(Path& path, const SocketAddress& peer, std::span<const std::uint8_t> first);
  /// Has it end the path's session, tell the peer, and count `left` down when nothing of it is used here any more;
  /// nobody rings for it after this.
  void close_path(Path& path, std::atomic<int>& left);

  // By the lane's thread.
  /// Sends a one-way message of the path's. False: there is no room; work() is called again when there may be.
  bool send(Path& path, message::ConstBuffer bytes, const message::SendOptions& options, Nanos now);

  bool handle(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now) override;
  bool advance(message::Endpoint& endpoint, bool moved, Nanos now) override;
  [[nodiscard]] Nanos next_deadline() const override;
  void leave(message::Endpoint&, Nanos) override {}

 private:
  /// What an index of the endpoint's sessions stands for now.
  struct Place {
    std::uint32_t generation = 0;
    Path* path = nullptr;
    bool own = false;  ///< opened here
  };
  /// A session that a peer opened, and has not said what for.
  struct Newcomer {
    message::SessionId session;
    Nanos until;
  };
  struct Opening;
  struct Closing;

  Lane(std::shared_ptr<NicTransports> transports, std::uint32_t number, Nanos timeout, Joins& joins);
  void work();
  static message::MutableBuffer place(void* context, message::SessionId session, std::uint16_t code,
                                      std::uint32_t length);
  [[nodiscard]] Path* path_of(const message::SessionId& session) const;
  void post(void (*task)(void* context), void* context);
  void put(const message::SessionId& session, Path* path, bool own);
  void opened(Opening& opening);
  void closed(const Closing& closing);
  void end_if_over(Path& path);
  void first_message(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);
  void lose(message::Endpoint& endpoint, const message::MessageEvent& event, Nanos now);

  Joins& joins_;
  Nanos timeout_;
  std::shared_ptr<NicTransports> transports_;
  std::uint32_t number_;
  std::uint16_t port_ = 0;
  Nanos next_tending_;  ///< of lane 0, for all of the NIC's
  MpscRing<Path*> bells_;
  std::vector<Place> places_;  ///< by the index of a session
  std::vector<Path*> stalled_;
  std::vector<Path*> again_;  ///< advance()'s
  std::deque<Newcomer> newcomers_;
  std::optional<rpc::MessageHost> host_;  ///< always, once open() has returned
  std::thread thread_;
};

}  // namespace warpline::nccl
