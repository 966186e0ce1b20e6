// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/fabric/fabric_host.h"
#include "sim/fabric/message_sizes.h"
#include "warpline/base/random.h"

namespace warpline::sim {

/// Who sends what to whom in a fabric.
struct FabricPlan {
  enum class Pattern : std::uint8_t {
    mixed,       ///< each host sends messages at random times, of the distribution's sizes, each to one of its peers
    incast,      ///< groups of `fan` hosts send `bytes` each to one host at once, round after round
    all_to_all,  ///< each host always has one message of `bytes` under way to each of its peers
  };
  Pattern pattern = Pattern::mixed;
  std::uint32_t peers = 8;  ///< of a host, at random, with a session each: opened before
  double load = 0.5;        ///< mixed: bytes of messages, of what the links can carry
  std::optional<MessageSizes> sizes{};
  std::uint32_t fan = 100;            ///< incast
  std::uint32_t bytes = 65'536;       ///< incast, all_to_all
  std::int64_t warm_up = 200'000;     ///< nanoseconds of load before those that count
  std::int64_t measured = 1'000'000;  ///< nanoseconds in which messages begin that count
  std::int64_t longest = 3'000'000;   ///< nanoseconds afterwards, load and all, that they have to arrive
  std::uint64_t seed = 1;
};

/// Messages of one range of sizes.
struct FabricSizes {
  std::uint32_t up_to = 0;  ///< bytes
  std::vector<float> slowdowns;
  std::uint64_t unfinished = 0;
};

/// What a plan found. Slowdown: the time from when the sender's application gave the message until the receiver's had
/// all of it, of the least that it could take over that path without any other traffic.
struct FabricFigures {
  std::vector<FabricSizes> sizes;
  std::vector<float> rounds;  ///< incast: slowdowns of rounds, of what the link to the receiver takes at least
  std::uint64_t begun = 0;
  std::uint64_t arrived = 0;
  std::uint64_t failed = 0;
  double goodput_gbit = 0;  ///< of a receiving host, all that arrived while messages counted
  double virtual_ms = 0;
  std::uint64_t datagrams = 0;
  FatTreeCounters tree;
  std::uint64_t lost = 0;      ///< packets that endpoints found lost
  std::uint64_t spurious = 0;  ///< of these, that had arrived
  std::uint64_t timeouts = 0;
};

/// Least time of a message of so many bytes over a path of so many links, in nanoseconds.
[[nodiscard]] double least_time(const FatTreeSettings& tree, const FabricHostSettings& host,
                                std::uint32_t fragment_bytes, std::uint32_t bytes, std::uint32_t links);

/// Sends by the plan and takes note of what arrives when.
class FabricLoad final : public FabricTraffic {
 public:
  FabricLoad(const FatTreeSettings& tree, const FabricHostSettings& host, const FabricPlan& plan);

  /// Everything, from the sessions' opening on.
  FabricFigures run();
  void arrived(std::uint32_t from, std::uint64_t number) override;
  void sent(FabricHost& host, bool well) override;

 private:
  struct Message {
    std::int64_t begun;
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t bytes;
    std::uint32_t round;  ///< incast: which; all_to_all: to which peer
    bool counts;
    bool here;
  };
  struct Arrival : WheelEvent {
    std::uint32_t host = 0;
  };
  struct Round {
    std::int64_t begun = 0;
    std::uint32_t left = 0;
    std::uint32_t receiver = 0;
  };

  void connect();
  void begin(std::uint32_t from, std::uint32_t peer, std::uint32_t bytes, std::uint32_t round);
  void happen(Arrival& arrival);
  void begin_round(std::uint32_t group);
  [[nodiscard]] std::int64_t gap();
  void add(FabricFigures& figures);

  FabricPlan plan_;
  FabricHostSettings host_settings_;
  Random random_;
  Fabric fabric_;
  std::vector<std::vector<std::uint32_t>> peers_;
  std::vector<Arrival> arrivals_;
  std::vector<Message> messages_;
  std::vector<Round> rounds_;  ///< by group, the one under way
  std::vector<FabricSizes> sizes_;
  std::vector<float> round_slowdowns_;
  std::int64_t count_from_ = INT64_MAX;
  std::int64_t count_until_ = INT64_MAX;
  std::uint64_t counted_left_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t arrived_bytes_ = 0;
  std::uint64_t failed_ = 0;
  std::uint32_t fragment_bytes_ = 1400;
};

}  // namespace warpline::sim
