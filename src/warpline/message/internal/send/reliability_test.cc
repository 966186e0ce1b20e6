// SPDX-License-Identifier: Apache-2.0
// Random traffic over networks that lose, repeat, reorder and damage packets.
#include <gtest/gtest.h>

#include "warpline/message/endpoint.h"
#include "warpline/message/loopback_testing.h"
#include "warpline/message/traffic_testing.h"

namespace warpline::message {
namespace {

EndpointConfig ample() {
  EndpointConfig config;
  config.max_sessions = 4;
  config.max_messages = 512;
  config.max_sent_packets = 8192;
  config.receive_bytes = 32U << 20;
  return config;
}

struct Case {
  const char* name;
  Impairment impairment;
  Traffic::Shape shape;
  EndpointConfig config = ample();
};

Case with(const char* name, void (*change)(Case&)) {
  Case made{name, {}, {}};
  change(made);
  return made;
}

void traffic_over(const Case& c, std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << c.name << ", seed " << seed);
  Loopback net(seed, c.impairment);
  Loopback::Host& a = net.add(c.config);
  Loopback::Host& b = net.add(c.config);
  const EndpointFacts fresh_a = a.endpoint.facts();
  SessionOptions options;
  options.ordered = c.shape.ordered;
  const auto [there, here] = net.connect(a, b, options);
  ASSERT_NE(here.index, SessionId{}.index);
  Traffic traffic(net, seed, c.shape);
  traffic.add(a, there);
  traffic.add(b, here);
  ASSERT_TRUE(traffic.run(Nanos{60'000'000'000}));
  traffic.check();
  if (!c.shape.give_up) {
    EXPECT_EQ(traffic.ended(MessageStatus::ok), 2 * c.shape.messages);
  }
  // Nothing leaks: when all is acknowledged the pools are whole, less the session itself.
  net.impairment = {};
  net.run_for(Nanos{3'000'000'000});
  for (const Loopback::Host* host : {&a, &b}) {
    EndpointFacts now = host->endpoint.facts();
    EXPECT_EQ(now.free_sessions + 1, fresh_a.free_sessions);
    now.free_sessions = fresh_a.free_sessions;
    EXPECT_EQ(now, fresh_a);
  }
}

class ReliableDelivery : public ::testing::TestWithParam<Case> {};

TEST_P(ReliableDelivery, all_arrives_once) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) traffic_over(GetParam(), seed);
}

INSTANTIATE_TEST_SUITE_P(Networks, ReliableDelivery,
                         ::testing::Values(with("clean", [](Case&) {}),  //
                                           with("loss", [](Case& c) { c.impairment.loss = 10'000; }),
                                           with("heavy_loss", [](Case& c) { c.impairment.loss = 200'000; }),
                                           with("duplicates", [](Case& c) { c.impairment.duplicate = 300'000; }),
                                           with("reorder", [](Case& c) { c.impairment.reorder = 300'000; }),
                                           with("everything",
                                                [](Case& c) {
                                                  c.impairment.loss = 30'000;
                                                  c.impairment.duplicate = 100'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.impairment.corrupt = 10'000;
                                                  c.impairment.mark = 50'000;
                                                }),
                                           with("ordered",
                                                [](Case& c) {
                                                  c.impairment.loss = 30'000;
                                                  c.impairment.duplicate = 100'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.shape.ordered = true;
                                                }),
                                           with("give_up",
                                                [](Case& c) {
                                                  c.impairment.loss = 50'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.shape.give_up = true;
                                                }),
                                           with("give_up_ordered",
                                                [](Case& c) {
                                                  c.impairment.loss = 50'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.shape.give_up = true;
                                                  c.shape.ordered = true;
                                                }),
                                           with("go_back_n",
                                                [](Case& c) {
                                                  c.impairment.loss = 5'000;
                                                  c.config.reliability = Reliability::go_back_n;
                                                  c.config.cc.kind = CcKind::timely;
                                                  c.shape.max_length = 20'000;
                                                }),
                                           with("go_back_n_on_a_path_slower_than_its_timeout",
                                                [](Case& c) {
                                                  c.impairment.delay = Nanos{13'000'000};
                                                  c.config.reliability = Reliability::go_back_n;
                                                  c.config.cc.kind = CcKind::none;
                                                  c.shape.messages = 20;
                                                  c.shape.max_length = 20'000;
                                                }),
                                           with("grants",
                                                [](Case& c) {
                                                  c.impairment.loss = 30'000;
                                                  c.impairment.duplicate = 100'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.config.grants = 8192;
                                                }),
                                           with("grants_give_up_ordered",
                                                [](Case& c) {
                                                  c.impairment.loss = 50'000;
                                                  c.impairment.reorder = 200'000;
                                                  c.shape.give_up = true;
                                                  c.shape.ordered = true;
                                                  c.config.grants = 8192;
                                                }),
                                           with("dctcp",
                                                [](Case& c) {
                                                  c.impairment.mark = 100'000;
                                                  c.config.cc.kind = CcKind::dctcp;
                                                }),
                                           with("no_control",
                                                [](Case& c) {
                                                  c.impairment.loss = 20'000;
                                                  c.config.cc.kind = CcKind::none;
                                                }),
                                           with("small_window",
                                                [](Case& c) {
                                                  c.impairment.loss = 20'000;
                                                  c.config.receive_window = 4096;
                                                }),
                                           with("little_memory",
                                                [](Case& c) {
                                                  c.impairment.loss = 20'000;
                                                  c.config.max_messages = 48;
                                                  c.config.receive_bytes = 1 << 20;
                                                  c.config.max_sent_packets = 256;
                                                }),
                                           with("small_packets",
                                                [](Case& c) {
                                                  c.impairment.loss = 10'000;
                                                  c.config.datagram_bytes = 256;
                                                  c.shape.max_length = 300'000;
                                                })),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace warpline::message
