// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/message/counters.h"
#include "warpline/message/types.h"
#include "warpline/transport/transport.h"

namespace warpline::service {

inline constexpr std::size_t kMessageStatuses = static_cast<std::size_t>(message::MessageStatus::peer_lost) + 1;
inline constexpr std::size_t kLossReasons = static_cast<std::size_t>(message::LossReason::unreachable) + 1;

/// A session that was lost.
struct SessionLoss {
  std::uint32_t session = 0;  ///< number of it at its client
  message::LossReason reason = message::LossReason::none;
  std::uint32_t requests = 0;  ///< that ended with it
  Nanos silent_before;         ///< the same at the turn of the loop before, when there was no loss yet
  Nanos silent;                ///< since anything had arrived from anyone, when the loss was told
};

/// What one worker did, in messages. Written by its thread, read by any, but for the losses: those after its end.
struct MessageTally {
  Counter first_submission;                         ///< at a rate: when, ns of the endpoint's clock
  Counter submitting;                               ///< at a rate: ns from the first submission to the last
  Counter submitted;                                ///< requests, by the client
  std::array<Counter, kMessageStatuses> completed;  ///< of these, by how they ended
  Counter served;                                   ///< requests, by the server
  Counter not_served;                               ///< of these, refused: no such service
  Counter bytes_out;                                ///< payload of requests answered, of responses given
  Counter bytes_in;                                 ///< payload of responses, of requests served
  Counter checked;                                  ///< responses compared with what they have to be
  Counter bad;                                      ///< of these, different
  Counter connected;
  Counter accepted;
  std::array<Counter, kLossReasons> lost;  ///< sessions
  Histogram latency;                       ///< ns from a request to its response; incast: of a whole round
  std::vector<SessionLoss> losses;         ///< the first kMostLosses

  static constexpr std::size_t kMostLosses = 256;

  /// Notes that a request was submitted at a rate. By the worker's thread.
  void note_submission(Nanos now) {
    const auto time = static_cast<std::uint64_t>(now.value);
    if (first_submission.get() == 0) first_submission.add(time);
    submitting.add(time - first_submission.get() - submitting.get());
  }
  /// offered_per_s is the rate at which requests were submitted, from the first to the last; 0 without a rate.
  [[nodiscard]] double offered_per_s() const {
    if (submitted.get() < 2 || submitting.get() == 0) return 0;
    return static_cast<double>(submitted.get() - 1) * 1e9 / static_cast<double>(submitting.get());
  }

  [[nodiscard]] std::uint64_t ok() const {
    return completed[static_cast<std::size_t>(message::MessageStatus::ok)].get();
  }
  [[nodiscard]] std::uint64_t ended() const {
    std::uint64_t sum = 0;
    for (const Counter& count : completed) sum += count.get();
    return sum;
  }
};

/// Sums over workers, at one moment.
struct MessageTotals {
  std::uint64_t submitted = 0;
  double offered_per_s = 0;  ///< rate of requests submitted; 0: there was none to keep
  std::array<std::uint64_t, kMessageStatuses> completed{};
  std::uint64_t served = 0, not_served = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  std::uint64_t checked = 0, bad = 0;
  std::uint64_t connected = 0, accepted = 0;
  std::array<std::uint64_t, kLossReasons> lost{};

  void add(const MessageTally& tally);
  /// Requests that did what they were for, at this end.
  [[nodiscard]] std::uint64_t done() const {
    return completed[static_cast<std::size_t>(message::MessageStatus::ok)] + served;
  }
};

/// What endpoints and transports counted.
struct PacketTotals {
  std::uint64_t in = 0, out = 0, bytes_in = 0, bytes_out = 0;
  std::array<std::uint64_t, message::kMessageDrops> drops{};
  std::vector<std::pair<std::string, std::uint64_t>> protocol;   ///< losses, timeouts and the like, by name
  std::vector<std::pair<std::string, std::uint64_t>> transport;  ///< drops below the protocol, by name

  void add(const message::EndpointCounters& counters);
  void add(const transport::TransportCounters& counters);
};

/// A line of people's table or of --json-stream: what happened between two samples.
struct MessageInterval {
  double time_s = 0;
  double seconds = 0;
  std::uint64_t done = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t p50 = 0, p99 = 0;  ///< ns, of the run so far; 0: none

  [[nodiscard]] static std::string header();
  [[nodiscard]] std::string row() const;
  [[nodiscard]] std::string json() const;
};

struct MessageReport {
  std::string command;
  nlohmann::json config;
  double duration_s = 0;   ///< to the end of the drain
  double measured_s = 0;   ///< that requests were made for
  MessageTotals totals;    ///< at the end
  MessageTotals measured;  ///< after measured_s
  PacketTotals packets;
  const Histogram* latency = nullptr;
  std::vector<SessionLoss> losses;
  Nanos peer_timeout;
  bool verify = false;
  std::uint32_t leaked = 0;        ///< packet buffers not given back
  nlohmann::ordered_json door;     ///< of a daemon: whom it let in; null: it is none
  nlohmann::ordered_json clients;  ///< of a daemon: what each did
  nlohmann::ordered_json gpu;      ///< where messages are, and what was copied; null: host memory
  std::vector<std::string> lcores;
  std::vector<std::string> notes;

  /// Every request ended once, and no buffer is missing.
  [[nodiscard]] bool conserved() const;
  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_text() const;
};

}  // namespace warpline::service
