// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/session_table.h"

#include <gtest/gtest.h>

namespace warpline::message {
namespace {

class SessionTableTest : public ::testing::Test {
 protected:
  static EndpointConfig config() {
    EndpointConfig config;
    config.max_sessions = 3;
    config.endpoint = 7;
    return config;
  }
  Session& taken() {
    Session& session = *table_.take(PeerAddress{});
    session.phase = SessionPhase::established;
    return session;
  }

  SessionTable table_{config(), SipKey{1, 2}};
};

/// The application may hold the window and, beyond it, two of the longest messages: more than 2^32 bytes.
TEST_F(SessionTableTest, counts_more_unread_bytes_than_32_bits_hold) {
  constexpr std::uint32_t kWindow = 1 << 30;
  Session& session = taken();
  for (int i = 0; i < 2; ++i) session.unread += 0x80000000U;
  EXPECT_EQ(room_of(session, kWindow), 0U);
  session.unread -= 0x80000000U;
  EXPECT_EQ(room_of(session, kWindow), 0U);
  session.unread -= 0x80000000U;
  EXPECT_EQ(room_of(session, kWindow), kWindow);
}

TEST_F(SessionTableTest, knows_a_session_by_all_its_names_and_only_while_it_is_in_use) {
  Session& session = taken();
  session.remote = 99;
  const SessionId id = table_.id_of(session);
  EXPECT_EQ(table_.find(id), &session);
  EXPECT_EQ(table_.named(table_.wire_id(session)), &session);
  EXPECT_EQ(table_.named(table_.wire_id(session) ^ 1U << 24), nullptr) << "of another endpoint";
  session.nonce = 7;
  EXPECT_EQ(table_.find_half_open(session.peer, 99, 7), nullptr);
  table_.show(session);
  EXPECT_EQ(table_.find_half_open(session.peer, 99, 7), &session);
  EXPECT_EQ(table_.find_half_open(session.peer, 99, 8), nullptr);
  EXPECT_EQ(table_.find(session.peer, 99), nullptr) << "not before it is confirmed";
  table_.hide(session);
  session.confirmed = true;
  table_.show(session);
  EXPECT_EQ(table_.find_half_open(session.peer, 99, 7), nullptr);
  EXPECT_EQ(table_.find(session.peer, 99), &session);
  table_.hide(session);
  EXPECT_EQ(table_.find(session.peer, 99), nullptr);
  table_.give(session);
  EXPECT_EQ(table_.find(id), nullptr);
  EXPECT_EQ(&taken(), &session);
  EXPECT_EQ(table_.find(id), nullptr) << "the same place, but another session";
}

TEST_F(SessionTableTest, knows_who_has_waited_longest_to_be_confirmed) {
  Session* sessions[3];
  for (std::uint32_t i = 0; i < 3; ++i) {
    sessions[i] = &taken();
    sessions[i]->remote = i;
    sessions[i]->nonce = 7;
    table_.show(*sessions[i]);
  }
  EXPECT_EQ(table_.oldest_half_open(), sessions[0]);
  table_.hide(*sessions[1]);
  table_.hide(*sessions[0]);
  EXPECT_EQ(table_.oldest_half_open(), sessions[2]);
  sessions[0]->confirmed = true;
  table_.show(*sessions[0]);
  table_.show(*sessions[1]);
  EXPECT_EQ(table_.oldest_half_open(), sessions[2]);
  table_.hide(*sessions[2]);
  EXPECT_EQ(table_.oldest_half_open(), sessions[1]);
  table_.hide(*sessions[1]);
  EXPECT_EQ(table_.oldest_half_open(), nullptr);
}

TEST_F(SessionTableTest, has_no_more_than_there_are) {
  for (int i = 0; i < 3; ++i) taken();
  EXPECT_EQ(table_.take(PeerAddress{}), nullptr);
  EXPECT_EQ(table_.available(), 0U);
}

TEST_F(SessionTableTest, frees_a_session_when_its_events_have_left_the_queue) {
  Session& session = taken();
  session.lost_event = true;
  table_.give(session);
  EXPECT_EQ(table_.available(), 2U);
  session.lost_event = false;
  table_.give(session);
  EXPECT_EQ(table_.available(), 3U);
}

TEST_F(SessionTableTest, queue_is_first_in_first_out_and_has_each_once) {
  SessionQueue<&Session::ready_next, &Session::ready> queue(table_);
  Session& first = taken();
  Session& second = taken();
  queue.add(first);
  queue.add(second);
  queue.add(first);
  EXPECT_EQ(&queue.take(), &first);
  queue.add(first);
  EXPECT_EQ(&queue.take(), &second);
  EXPECT_EQ(&queue.take(), &first);
  EXPECT_TRUE(queue.empty());
}

/// A session that ends while it stands in a queue, and is used anew, is still there, and nobody behind it is lost.
template <typename Queue>
void expect_place_kept(SessionTable& table) {
  Queue queue(table);
  Session& first = *table.take(PeerAddress{});
  Session& second = *table.take(PeerAddress{});
  queue.add(first);
  queue.add(second);
  table.give(first);
  EXPECT_EQ(table.take(PeerAddress{}), &first);
  queue.add(first);
  EXPECT_EQ(&queue.take(), &first);
  EXPECT_EQ(&queue.take(), &second);
  EXPECT_TRUE(queue.empty());
  table.give(first);
  table.give(second);
}

TEST_F(SessionTableTest, queues_keep_the_place_of_a_session_that_is_used_anew) {
  expect_place_kept<SessionQueue<&Session::ready_next, &Session::ready>>(table_);
  expect_place_kept<SessionQueue<&Session::urgent_next, &Session::urgent>>(table_);
  expect_place_kept<SessionQueue<&Session::starved_next, &Session::starved_listed>>(table_);
  expect_place_kept<SessionQueue<&Session::ack_next, &Session::ack_listed>>(table_);
  expect_place_kept<SessionQueue<&Session::wanting_next, &Session::wants_grants>>(table_);
}

}  // namespace
}  // namespace warpline::message
