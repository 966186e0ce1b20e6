// SPDX-License-Identifier: Apache-2.0
// The controllers alone, in a loop with a queue: up to hundreds of senders that always have something to send, and
// nothing of the protocol.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/port.h"
#include "warpline/message/congestion_control_testing.h"

namespace warpline::sim {
namespace {

constexpr std::uint32_t kMtu = 1472;
constexpr std::int64_t kBack = 3'000;  // nanoseconds that an acknowledgement takes

/// Sends into the port as its window and pacing allow.
class Sender final : public Actor {
 public:
  Sender(EventQueue& events, PacketPool& pool, Port& port, const message::CcConfig& config, std::uint32_t index)
      : events_(events), pool_(pool), port_(port), control_(config), index_(index) {}

  void send() {
    for (;;) {
      const message::CcOutput allowed = control_.output();
      if (in_flight_ > 0 && static_cast<double>(in_flight_ + 1) * kMtu > allowed.window_bytes) return;
      if (events_.now() < next_send_) {
        if (!std::exchange(waiting_, true)) events_.at(next_send_, *this, kSend);
        return;
      }
      Packet* packet = pool_.take();
      packet->length = kMtu;
      packet->from = index_;
      packet->ecn = 2;
      packet->token = static_cast<std::uint64_t>(events_.now());
      next_send_ = events_.now() + allowed.pacing_gap.value;
      ++in_flight_;
      port_.offer(packet);
    }
  }

  /// The packet arrived; its acknowledgement is on the way.
  void arrived(const Packet& packet) {
    events_.at(events_.now() + kBack, *this, packet.token << 1 | static_cast<std::uint64_t>(packet.ecn == 3));
  }

  void act(std::uint64_t what) override {
    if (what == kSend) {
      waiting_ = false;
      return send();
    }
    --in_flight_;
    ++acknowledged;
    control_.on_ack({.now = Nanos{events_.now()},
                     .rtt = Nanos{events_.now() - static_cast<std::int64_t>(what >> 1)},
                     .remote_delay = Nanos{0},
                     .acked_bytes = kMtu,
                     .acked_packets = 1,
                     .ecn_marked_packets = static_cast<std::uint32_t>(what & 1),
                     .in_flight_bytes = static_cast<std::uint32_t>(in_flight_) * kMtu});
    send();
  }

  std::uint64_t acknowledged = 0;

 private:
  static constexpr std::uint64_t kSend = ~std::uint64_t{0};

  EventQueue& events_;
  PacketPool& pool_;
  Port& port_;
  message::CongestionControl control_;
  std::uint32_t index_;
  std::int64_t in_flight_ = 0;
  std::int64_t next_send_ = 0;
  bool waiting_ = false;
};

class Receiver final : public PacketSink {
 public:
  Receiver(PacketPool& pool, std::vector<std::unique_ptr<Sender>>& senders) : pool_(pool), senders_(senders) {}
  void arrive(Packet* packet) override {
    senders_[packet->from]->arrived(*packet);
    pool_.give(packet);
  }

 private:
  PacketPool& pool_;
  std::vector<std::unique_ptr<Sender>>& senders_;
};

struct Figures {
  double utilization = 0;
  double jain = 0;
  double p50_wait_us = 0;
  double p99_wait_us = 0;
};

Figures share_a_link(const message::CcConfig& config, std::uint32_t count, std::uint64_t mark_above_bytes,
                     double rate = 25e9, std::int64_t settles = 20'000'000) {
  EventQueue events;
  PacketPool pool;
  Port port(
      events, pool,
      // A packet that is dropped is missing for ever: even a thousand initial windows must fit.
      {.bits_per_second = rate, .delay = 3'000, .capacity_bytes = 64'000'000, .mark_above_bytes = mark_above_bytes}, {},
      1);
  std::vector<std::unique_ptr<Sender>> senders;
  Receiver receiver(pool, senders);
  port.connect(receiver);
  for (std::uint32_t i = 0; i < count; ++i) {
    senders.push_back(std::make_unique<Sender>(events, pool, port, config, i));
    senders.back()->send();
  }
  events.run_until(settles);
  port.forget_statistics();
  for (const auto& sender : senders) sender->acknowledged = 0;
  constexpr std::int64_t kMeasured = 50'000'000;
  events.run_until(events.now() + kMeasured);
  double sum = 0;
  double squares = 0;
  for (const auto& sender : senders) {
    const auto packets = static_cast<double>(sender->acknowledged);
    sum += packets;
    squares += packets * packets;
  }
  return {.utilization = static_cast<double>(port.counters().sent_wire_bytes) * 8 / (rate * kMeasured / 1e9),
          .jain = sum * sum / (count * squares),
          .p50_wait_us = static_cast<double>(port.waits().quantile(0.5)) / 1e3,
          .p99_wait_us = static_cast<double>(port.waits().quantile(0.99)) / 1e3};
}

class ControlLoop : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ControlLoop, SwiftKeepsTheLinkBusyAndTheQueueShort) {
  const message::CcConfig config;
  const Figures figures = share_a_link(config, GetParam(), 0);
  RecordProperty("p99_wait_ns", static_cast<int>(figures.p99_wait_us * 1e3));
  EXPECT_GE(figures.utilization, 0.97);
  EXPECT_GE(figures.jain, 0.95);
  EXPECT_LE(figures.p99_wait_us, 2 * static_cast<double>(config.swift.base_target.value) / 1e3);
}

TEST_P(ControlLoop, DctcpToo) {
  message::CcConfig config;
  config.kind = message::CcKind::dctcp;
  const Figures figures = share_a_link(config, GetParam(), 100'000);
  EXPECT_GE(figures.utilization, 0.97);
  EXPECT_GE(figures.jain, 0.95);
  EXPECT_LE(figures.p99_wait_us, 120) << "a hundred windows of one packet are 49 us";
}

/// So many that each has about a packet under way or less: the delay is the queue of all, and no flow may take it for a
/// longer path. The target at the smallest window is the greatest that flow scaling allows (the paper, section 3.5).
TEST(ControlLoopFanIn, SwiftTakesNoQueueForThePath) {
  const message::CcConfig config;
  const auto greatest = static_cast<double>(config.swift.base_target.value + config.swift.scaling_range.value) / 1e3;
  for (const auto& [count, rate, jain] :
       {std::tuple{16U, 1e9, 0.95}, {300U, 25e9, 0.95}, {400U, 25e9, 0.95}, {1000U, 25e9, 0.9}}) {
    const Figures figures = share_a_link(config, count, 0, rate, 200'000'000);
    RecordProperty("p50_wait_ns_of_" + std::to_string(count), static_cast<int>(figures.p50_wait_us * 1e3));
    RecordProperty("p99_wait_ns_of_" + std::to_string(count), static_cast<int>(figures.p99_wait_us * 1e3));
    RecordProperty("jain_of_" + std::to_string(count), std::to_string(figures.jain));
    RecordProperty("utilization_of_" + std::to_string(count), std::to_string(figures.utilization));
    EXPECT_GE(figures.utilization, 0.95) << count;
    EXPECT_GE(figures.jain, jain) << count;
    EXPECT_LE(figures.p50_wait_us, 1.1 * greatest) << count;
    EXPECT_LE(figures.p99_wait_us, 2.5 * greatest) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Senders, ControlLoop, testing::Values(1, 2, 10, 100));

}  // namespace
}  // namespace warpline::sim
