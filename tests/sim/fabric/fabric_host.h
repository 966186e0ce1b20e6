// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "sim/fabric/event_wheel.h"
#include "sim/fabric/fat_tree.h"
#include "warpline/message/endpoint.h"

namespace warpline::sim {

class FabricHost;

/// What is the same for all hosts of a fabric.
struct FabricHostSettings {
  message::EndpointConfig endpoint{};
  std::int64_t wake_delay = 500;  ///< nanoseconds from a packet's arrival until the host's loop has it
  std::int64_t link_ahead = 500;  ///< of packets that the host gives its link before that needs them
};

/// Who has hosts send messages, and is told of those that arrived whole.
class FabricTraffic {
 public:
  /// A message of the host `from`, by its `number`th, is there.
  virtual void arrived(std::uint32_t from, std::uint64_t number) = 0;
  /// The host has acknowledged room for another: one of its messages has ended, well or not.
  virtual void sent(FabricHost& host, bool well) = 0;

 protected:
  ~FabricTraffic() = default;
};

/// An endpoint of the protocol at a host of the tree, with the loop that drives it. Messages go one way; their bytes,
/// which nobody reads, are in no memory, so that a host is some hundred kilobytes.
class FabricHost {
 public:
  FabricHost(EventWheel& wheel, FatTree& tree, FabricTraffic& traffic, std::vector<FabricHost*>& hosts,
             std::uint32_t index, const FabricHostSettings& settings);

  /// Opens sessions to these hosts, each once.
  void connect(const std::vector<std::uint32_t>& peers);
  /// Sends so many bytes over its session to the `peer`th of them, now or when there is room.
  void send(std::uint32_t peer, std::uint32_t bytes, std::uint64_t number);
  void take(FabricPacket& packet);

  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] bool connected() const { return established_ == peers_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const message::Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] std::uint32_t fragment_bytes() const { return endpoint_.facts(sessions_[0]).fragment_bytes; }

 private:
  struct Wanted {
    std::uint32_t peer;
    std::uint32_t bytes;
    std::uint64_t number;
  };
  /// A loop of the host at its time; of several the first is the one that counts.
  struct Wake : WheelEvent {
    FabricHost* host = nullptr;
  };
  friend class Fabric;

  void wake_at(std::int64_t time);
  void wake(WheelEvent& event);
  void loop();
  bool give(const Wanted& wanted);
  void handle(const message::MessageEvent& event);
  void transmit();
  /// The message of this host with that code, which has come to its `peer`th.
  [[nodiscard]] std::uint64_t take_number(std::uint32_t peer, std::uint16_t code);

  EventWheel& wheel_;
  FatTree& tree_;
  FabricTraffic& traffic_;
  std::vector<FabricHost*>& hosts_;
  std::uint32_t index_;
  FabricHostSettings settings_;
  message::Endpoint endpoint_;
  std::vector<std::uint32_t> peers_;
  std::vector<message::SessionId> sessions_;
  std::vector<std::uint16_t> codes_;  ///< of the next message, by peer
  std::size_t established_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> numbers_;  ///< of messages under way, by peer and code
  std::unordered_map<std::uint32_t, std::uint64_t> senders_;  ///< of sessions that were accepted: host, and its peer
  std::deque<Wanted> waiting_;
  std::vector<FabricPacket*> arrived_;
  std::int64_t next_loop_ = INT64_MAX;
  std::vector<Wake*> spare_;
  std::deque<Wake> wakes_;
};

/// Hosts, all that is between them, and their time.
class Fabric {
 public:
  Fabric(const FatTreeSettings& tree, const FabricHostSettings& host, FabricTraffic& traffic);
  [[nodiscard]] FabricHost& host(std::uint32_t index) { return *hosts_[index]; }
  [[nodiscard]] std::uint32_t hosts() const { return tree_.hosts(); }
  [[nodiscard]] FatTree& tree() { return tree_; }
  [[nodiscard]] EventWheel& wheel() { return wheel_; }
  /// Traffic's own events, which `happen` is called with.
  template <typename Happen>
  void run_until(std::int64_t end, const Happen& happen) {
    wheel_.run_until(end, [&](WheelEvent& event) {
      if (event.kind == WheelKind::packet) return move(static_cast<FabricPacket&>(event));
      if (event.kind == WheelKind::loop) return static_cast<FabricHost::Wake&>(event).host->wake(event);
      happen(event);
    });
  }

 private:
  void move(FabricPacket& packet);

  EventWheel wheel_;
  FatTree tree_;
  std::deque<FabricHost> memory_;
  std::vector<FabricHost*> hosts_;
};

}  // namespace warpline::sim
