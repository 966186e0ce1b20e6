// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/peer_groups.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline::message {
namespace {

constexpr std::uint64_t kMemory = 64;

EndpointConfig sessions_of(std::uint32_t count) {
  EndpointConfig config;
  config.max_sessions = count;
  return config;
}

Session of(IpAddress address) {
  Session session;
  session.peer = peer_address(address, 7);
  return session;
}

bool may_hold(const PeerGroups& groups, const Session& session, std::uint64_t bytes, std::uint64_t free) {
  return groups.may_hold(session, bytes, 0, free) == PeerGroups::Share::allows;
}

/// Takes messages of `bytes` as long as it may; how many.
int take_all(PeerGroups& groups, const Session& session, std::uint64_t bytes, std::uint64_t& free) {
  int count = 0;
  for (; bytes <= free && may_hold(groups, session, bytes, free); ++count) {
    groups.hold(session, bytes, false);
    free -= bytes;
  }
  return count;
}

TEST(PeerGroups, leave_memory_for_others_however_many_sessions_an_address_has) {
  PeerGroups groups(sessions_of(300), {1, 2});
  std::uint64_t free = kMemory << 20;
  std::vector<Session> sessions(256, of(Ipv4Address{{192, 0, 2, 1}}));
  for (Session& session : sessions) groups.join(session);
  for (const Session& session : sessions) take_all(groups, session, 1 << 20, free);
  EXPECT_GE(free, (kMemory << 20) * 2 / 3);
  Session other = of(Ipv4Address{{198, 51, 100, 1}});
  groups.join(other);
  EXPECT_GE(take_all(groups, other, 1 << 20, free), 14) << "an address that comes later gets as much of what is left";
}

TEST(PeerGroups, leave_memory_for_others_however_many_addresses_a_neighbourhood_has) {
  for (const bool v6 : {false, true}) {
    PeerGroups groups(sessions_of(300), {1, 2});
    std::uint64_t free = kMemory << 20;
    for (int i = 0; i < 256; ++i) {
      IpAddress address = Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(i)}};
      if (v6) address = Ipv6Address{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, static_cast<std::uint8_t>(i), 1}};
      Session session = of(address);
      groups.join(session);
      take_all(groups, session, 64 << 10, free);
    }
    EXPECT_GE(free, (kMemory << 20) / 2 - (64 << 10));
    Session other = of(v6 ? IpAddress{Ipv6Address{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 2}}} : Ipv4Address{{192, 0, 3, 1}});
    groups.join(other);
    EXPECT_GE(take_all(groups, other, 1 << 20, free), 10);
  }
}

TEST(PeerGroups, let_one_have_all_while_nobody_else_has_any) {
  PeerGroups groups(sessions_of(4), {1, 2});
  Session session = of(Ipv4Address{{192, 0, 2, 1}});
  Session other = of(Ipv4Address{{192, 0, 3, 1}});
  groups.join(session);
  groups.join(other);
  EXPECT_TRUE(may_hold(groups, session, 60, 64));
  groups.hold(session, 60, false);
  EXPECT_FALSE(may_hold(groups, session, 3, 4));
  EXPECT_FALSE(may_hold(groups, other, 3, 4));
  EXPECT_TRUE(may_hold(groups, other, 2, 4));
  groups.release(session, 60, false);
  EXPECT_TRUE(may_hold(groups, other, 60, 64));
}

TEST(PeerGroups, lend_to_one_at_a_time_of_a_neighbourhood) {
  PeerGroups groups(sessions_of(4), {1, 2});
  Session sessions[] = {of(Ipv4Address{{192, 0, 2, 1}}), of(Ipv4Address{{192, 0, 2, 2}}),
                        of(Ipv4Address{{192, 0, 3, 1}})};
  for (Session& session : sessions) groups.join(session);
  EXPECT_TRUE(groups.may_borrow(sessions[0]));
  groups.hold(sessions[0], 10, true);
  EXPECT_FALSE(groups.may_borrow(sessions[0]));
  EXPECT_FALSE(groups.may_borrow(sessions[1]));
  EXPECT_TRUE(groups.may_borrow(sessions[2]));
  groups.release(sessions[0], 10, true);
  EXPECT_TRUE(groups.may_borrow(sessions[1]));
}

TEST(PeerGroups, admit_so_many_half_open_and_so_many_in_all_of_an_address_and_of_a_prefix) {
  EndpointConfig config = sessions_of(100);
  config.quotas = {.per_address = 4, .per_prefix = 6, .half_open_per_address = 2, .half_open_per_prefix = 3};
  PeerGroups groups(config, {1, 2});
  const auto address = [](std::uint8_t last, std::uint16_t port) {
    return peer_address(Ipv4Address{{192, 0, 2, last}}, port);
  };
  const auto join = [&](std::uint8_t last, bool opened_here) {
    Session session;
    session.peer = address(last, 1);
    session.opened_here = opened_here;
    groups.join(session);
    return session;
  };
  const auto confirm = [&](Session& session) {
    groups.confirm(session);
    session.confirmed = true;
  };
  const auto admits = [&](std::uint8_t last) { return groups.admits(address(last, 2)); };
  for (int i = 0; i < 9; ++i) join(1, true);
  EXPECT_EQ(admits(1), PeerGroups::Admission::yes) << "own sessions do not count";
  Session one = join(1, false);
  Session two = join(1, false);
  EXPECT_EQ(admits(1), PeerGroups::Admission::half_open_per_address);
  EXPECT_EQ(admits(2), PeerGroups::Admission::yes);
  Session neighbour = join(2, false);
  EXPECT_EQ(admits(3), PeerGroups::Admission::half_open_per_prefix);
  for (Session* session : {&one, &two, &neighbour}) confirm(*session);
  EXPECT_EQ(admits(1), PeerGroups::Admission::yes);
  Session three = join(1, false);
  confirm(three);
  join(1, false);
  EXPECT_EQ(admits(1), PeerGroups::Admission::per_address);
  EXPECT_EQ(admits(2), PeerGroups::Admission::yes);
  join(3, false);
  EXPECT_EQ(admits(2), PeerGroups::Admission::per_prefix);
  groups.leave(three);
  groups.leave(neighbour);
  EXPECT_EQ(admits(1), PeerGroups::Admission::yes);
  EXPECT_EQ(groups.admits(peer_address(Ipv4Address{{192, 0, 3, 1}}, 1)), PeerGroups::Admission::yes);
}

TEST(PeerGroups, hold_no_more_than_their_quotas_but_one_message_of_any_length) {
  EndpointConfig config = sessions_of(4);
  config.quotas = {.bytes_per_address = 10, .bytes_per_prefix = 15};
  PeerGroups groups(config, {1, 2});
  Session sessions[] = {of(Ipv4Address{{192, 0, 2, 1}}), of(Ipv4Address{{192, 0, 2, 2}}),
                        of(Ipv4Address{{192, 0, 3, 1}})};
  for (Session& session : sessions) groups.join(session);
  const auto share = [&](int i, std::uint64_t bytes) { return groups.may_hold(sessions[i], bytes, 0, 1000); };
  groups.hold(sessions[0], 4, false);
  EXPECT_EQ(share(0, 6), PeerGroups::Share::allows);
  EXPECT_EQ(share(0, 7), PeerGroups::Share::address);
  EXPECT_EQ(share(1, 11), PeerGroups::Share::allows) << "its first, as far as the prefix goes";
  EXPECT_EQ(share(1, 12), PeerGroups::Share::prefix);
  EXPECT_EQ(share(2, 400), PeerGroups::Share::allows) << "its first";
  groups.hold(sessions[2], 400, false);
  EXPECT_EQ(share(2, 1), PeerGroups::Share::address);
  groups.release(sessions[2], 400, false);
  EXPECT_EQ(share(2, 600), PeerGroups::Share::address) << "half of what is free";
}

/// Takes places as long as it may; how many.
std::uint32_t take_places(PeerGroups& groups, Session& session, std::vector<Message>& messages) {
  std::uint32_t count = 0;
  for (; groups.may_have_place(session, false) == PeerGroups::Share::allows; ++count)
    groups.take_place(session, messages.emplace_back());
  return count;
}

TEST(PeerGroups, let_one_address_have_eight_of_nine_places_and_a_prefix_16_of_17) {
  EndpointConfig config = sessions_of(100);
  config.max_messages = 99;  // fewer than are kept for sessions
  PeerGroups groups(config, {1, 2});
  std::vector<Message> messages;
  Session one = of(Ipv4Address{{192, 0, 2, 1}});
  groups.join(one);
  EXPECT_EQ(take_places(groups, one, messages), 88U);
  std::uint32_t all = 88;
  for (std::uint8_t i = 2; i < 50; ++i) {
    Session neighbour = of(Ipv4Address{{192, 0, 2, i}});
    groups.join(neighbour);
    all += take_places(groups, neighbour, messages);
  }
  EXPECT_EQ(all, 93U);
  Session other = of(Ipv4Address{{198, 51, 100, 1}});
  groups.join(other);
  EXPECT_EQ(groups.may_have_place(other, false), PeerGroups::Share::allows);
  EXPECT_EQ(groups.may_have_place(one, false), PeerGroups::Share::address);
}

TEST(PeerGroups, keep_the_first_places_of_each_session_for_it) {
  EndpointConfig config = sessions_of(10);
  config.max_messages = 120;  // of which 3 each are kept
  PeerGroups groups(config, {1, 2});
  std::vector<Message> messages;
  std::vector<Session> sessions(9, of(Ipv4Address{{192, 0, 2, 1}}));
  std::uint32_t all = 0;
  for (Session& session : sessions) {
    groups.join(session);
    all += take_places(groups, session, messages);
  }
  EXPECT_EQ(all, 9 * 3 + 80U) << "8/9 of 90";
  Session neighbour = of(Ipv4Address{{192, 0, 2, 2}});
  groups.join(neighbour);
  EXPECT_GE(take_places(groups, neighbour, messages), 3U);
}

TEST(PeerGroups, of_places_leave_one_for_the_message_that_another_waits_for) {
  EndpointConfig config = sessions_of(100);
  config.max_messages = 45;
  PeerGroups groups(config, {1, 2});
  std::vector<Message> messages;
  Session session = of(Ipv4Address{{192, 0, 2, 1}});
  groups.join(session);
  while (groups.may_have_place(session, true) == PeerGroups::Share::allows)
    groups.take_place(session, messages.emplace_back());
  EXPECT_EQ(messages.size(), 36U) << "4 of 5 parts";
  EXPECT_GE(take_places(groups, session, messages), 1U);
}

TEST(PeerGroups, let_one_address_have_eight_of_nine_parts_of_the_memory) {
  PeerGroups groups(sessions_of(4), {1, 2});
  Session session = of(Ipv4Address{{192, 0, 2, 1}});
  Session other = of(Ipv4Address{{198, 51, 100, 1}});
  groups.join(session);
  groups.join(other);
  const auto may = [&](const Session& each, std::uint64_t bytes, std::uint64_t later, std::uint64_t free) {
    return groups.may_have(each.address_group, bytes, later, free);
  };
  EXPECT_EQ(may(session, 90, 0, 90), PeerGroups::Share::allows) << "who has none may have one message of any length";
  EXPECT_EQ(may(session, 91, 0, 90), PeerGroups::Share::address);
  groups.charge(session.address_group, 70);
  EXPECT_EQ(may(session, 10, 0, 20), PeerGroups::Share::allows);
  EXPECT_EQ(may(session, 11, 0, 20), PeerGroups::Share::address);
  EXPECT_EQ(may(session, 6, 5, 20), PeerGroups::Share::address) << "it would leave no 5 for the next";
  EXPECT_EQ(may(other, 20, 0, 20), PeerGroups::Share::allows);
  groups.refund(session.address_group, 70);
  EXPECT_EQ(may(session, 90, 0, 90), PeerGroups::Share::allows);
}

TEST(PeerGroups, remember_what_a_session_left_until_it_is_freed) {
  EndpointConfig config = sessions_of(2);
  config.max_messages = 18;  // of which 2 each are kept
  PeerGroups groups(config, {1, 2});
  std::vector<Message> messages;
  messages.reserve(100);
  Session session = of(Ipv4Address{{192, 0, 2, 1}});
  for (int i = 0; i < 100; ++i) {
    groups.join(session);
    take_places(groups, session, messages);
    groups.leave(session);
  }
  EXPECT_EQ(messages.size(), 2 + 12U) << "a session that comes again gets no more";
  for (const Message& message : messages) {
    --session.places;
    if (message.charged) groups.refund_place(message);
  }
  messages.clear();
  groups.join(session);
  EXPECT_EQ(take_places(groups, session, messages), 2 + 12U);
}

TEST(PeerGroups, put_those_together_that_find_no_group_of_their_own) {
  EndpointConfig config = sessions_of(2);
  config.max_messages = 1000;
  PeerGroups groups(config, {1, 2});
  for (int i = 0; i < 100; ++i) {  // each leaves something behind
    Session session = of(Ipv4Address{{10, 0, static_cast<std::uint8_t>(i), 1}});
    groups.join(session);
    groups.charge(session.address_group, 10);
    groups.leave(session);
  }
  Session session = of(Ipv4Address{{10, 1, 0, 1}});
  groups.join(session);
  EXPECT_EQ(groups.may_have(session.address_group, 90, 0, 100), PeerGroups::Share::address)
      << "it has what those before it left";
  for (int i = 0; i < 100; ++i) {  // others come and go
    Session other = of(Ipv4Address{{10, 2, static_cast<std::uint8_t>(i), 1}});
    groups.join(other);
    EXPECT_EQ(other.address_group, session.address_group);
    groups.leave(other);
  }
  groups.refund(session.address_group, 10);
  groups.leave(session);
  for (int i = 0; i < 4;
       ++i) {  // the first ones had groups of their own: two sessions have two each, and twice as many
    Session before = of(Ipv4Address{{10, 0, static_cast<std::uint8_t>(i), 1}});
    groups.join(before);
    EXPECT_NE(before.address_group, session.address_group);
    groups.refund(before.address_group, 10);
    groups.leave(before);
  }
  Session last = of(Ipv4Address{{10, 3, 0, 1}});
  groups.join(last);
  EXPECT_EQ(groups.may_have(last.address_group, 90, 0, 100), PeerGroups::Share::allows) << "there is a group again";
}

TEST(PeerGroups, begin_again_with_nothing_when_all_sessions_have_left) {
  PeerGroups groups(sessions_of(2), {1, 2});
  for (int i = 0; i < 100; ++i) {
    Session sessions[] = {of(Ipv4Address{{10, 0, static_cast<std::uint8_t>(i), 1}}),
                          of(Ipv4Address{{10, 1, static_cast<std::uint8_t>(i), 1}})};
    for (Session& session : sessions) groups.join(session);
    groups.hold(sessions[0], 10, false);
    EXPECT_TRUE(may_hold(groups, sessions[1], 10, 20));
    groups.release(sessions[0], 10, false);
    for (const Session& session : sessions) groups.leave(session);
  }
}

TEST(PeerGroups, take_other_quotas_and_leave_sessions_that_are_there) {
  PeerGroups groups(sessions_of(300), {1, 2});
  std::vector<Session> sessions(3, of(Ipv4Address{{192, 0, 2, 1}}));
  for (Session& session : sessions) groups.join(session);
  EXPECT_EQ(groups.admits(sessions[0].peer), PeerGroups::Admission::yes);
  groups.set_quotas({.per_address = 2});
  EXPECT_EQ(groups.admits(sessions[0].peer), PeerGroups::Admission::per_address);
  EXPECT_EQ(groups.accepted(), 3U);
  groups.set_quotas({});
  EXPECT_EQ(groups.admits(sessions[0].peer), PeerGroups::Admission::yes);
}

}  // namespace
}  // namespace warpline::message
