// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "warpline/message/config.h"

namespace warpline::sim {

/// The published algorithm of eRPC, as the compatibility mode has it.
[[nodiscard]] message::EndpointConfig compatibility_mode();

/// A hundred hosts to one, at 25 Gbit/s and 1 us a link.
struct IncastPlan {
  bool answers = false;                    ///< that one asks them all for `bytes`, instead of being sent them
  std::uint32_t bytes = 16 << 10;          ///< of a message
  std::uint32_t at_once = 1;               ///< of each of the hundred
  std::uint64_t queue_bytes = 12'000'000;  ///< of the switch before that one's link
};

struct IncastFigures {
  double link_share = 0;   ///< payload delivered, of what full packets alone could carry
  double jain = 0;         ///< fairness of what the senders got delivered (Jain, Chiu, Hawe, 1984)
  double p50_wait_us = 0;  ///< in the queue before the receiver's link
  double p99_wait_us = 0;
  double p99_us = 0;  ///< of a request
  std::uint64_t dropped = 0;
  std::uint64_t failed = 0;
};

/// After 20 ms, for 50 ms.
[[nodiscard]] IncastFigures incast(const message::EndpointConfig& config, const IncastPlan& plan);

/// Bytes a second of 1 MiB requests, four at once, lost on the way there and back; 25 Gbit/s, 1 us a link.
[[nodiscard]] double goodput_at_loss(const message::EndpointConfig& config, double loss, std::int64_t nanos);

struct OneLossFigures {
  double rtt_us = 0;  ///< of an empty network, without what waits
  double lossless_p99_us = 0;
  double p99_us = 0;  ///< of requests one in 20 of which lost a packet
  std::uint64_t failed = 0;
};

/// One request at a time; packets of both directions in turn are lost.
[[nodiscard]] OneLossFigures one_loss(const message::EndpointConfig& config, std::uint32_t request_bytes,
                                      std::uint32_t answer_bytes);

/// Sessions between two hosts, over 10 Gbit/s and 5 us a link, with a switch that holds 64 KiB before the receiver's.
struct SharingFigures {
  std::uint64_t dropped = 0;  ///< in the first millisecond of all, which begin together; or of the last one
  double fair_after_us = 0;   ///< until Jain's index was 0.95 over 0.5 ms or four requests each; 0: not in 20 ms. Or
                              ///< until the last one had half of its share
  double jain = 0;            ///< fairness from then on, over 10 ms (Jain, Chiu, Hawe, 1984)
  double link_share = 0;      ///< payload delivered then, of what full packets alone could carry
  std::uint64_t failed = 0;
};

/// `late`: the last of them begins 20 ms after the others.
[[nodiscard]] SharingFigures sharing(const message::EndpointConfig& config, std::uint32_t sessions, bool late);

// Print a table each; the exit code.
int print_incast();
int print_loss();
int print_sharing();
int print_one_loss();

}  // namespace warpline::sim
