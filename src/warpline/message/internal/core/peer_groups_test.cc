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
