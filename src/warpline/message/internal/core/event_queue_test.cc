// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline::message {
namespace {

class EventQueueTest : public ::testing::Test {
 protected:
  static EndpointConfig config() {
    EndpointConfig config;
    config.max_sessions = 2;
    config.max_messages = 8;
    return config;
  }
  Session of(Ipv4Address address) {
    Session session;
    session.peer = peer_address(address, 7);
    groups_.join(session);
    return session;
  }
  std::uint32_t message(TransferRole role, Session& session) {
    const std::uint32_t index = messages_.take(role, SessionId{0, 1}, 1);
    messages_[index].state = MessageState::delivered;
    groups_.take_place(session, messages_[index]);
    return index;
  }
  std::uint32_t message(TransferRole role) { return message(role, peer_); }

  const EndpointConfig config_ = config();
  SessionTable sessions_{config_, SipKey{1, 2}};
  PeerGroups groups_{config_, {1, 2}};
  MessagePool messages_{config_, groups_};
  EventQueue events_{sessions_, messages_, groups_};
  Session peer_ = of({{192, 0, 2, 1}});
};

TEST_F(EventQueueTest, keeps_the_order_of_events_of_all_kinds) {
  Session& session = *sessions_.take(PeerAddress{});
  const std::uint32_t sent = message(TransferRole::own_message);
  events_.add_opened(session);
  events_.add(sent);
  events_.add_lost(session);
  EXPECT_EQ(events_.take(100).of, EventLink::Of::opened);
  EXPECT_EQ(events_.take(100).index, sent);
  EXPECT_EQ(events_.take(100).of, EventLink::Of::lost);
  EXPECT_EQ(events_.take(100).index, kNone);
}

TEST_F(EventQueueTest, tells_nothing_of_a_forgotten_session) {
  Session& session = *sessions_.take(PeerAddress{});
  session.forgotten = true;
  events_.add_lost(session);
  EXPECT_EQ(events_.take(100).index, kNone);
}

TEST_F(EventQueueTest, without_requests_hands_out_what_is_behind_them) {
  const std::uint32_t first = message(TransferRole::peer_request);
  const std::uint32_t second = message(TransferRole::peer_request);
  const std::uint32_t sent = message(TransferRole::own_message);
  for (const std::uint32_t index : {first, second, sent}) events_.add(index);
  EXPECT_EQ(events_.take(0).index, sent);
  EXPECT_EQ(events_.take(0).index, kNone);
  EXPECT_EQ(events_.take(100).index, first);
  EXPECT_EQ(events_.take(100).index, second);
  EXPECT_EQ(events_.take(100).index, kNone);
}

TEST_F(EventQueueTest, hands_out_waiting_requests_of_prefixes_and_of_their_addresses_in_turn) {
  Session neighbour = of({{192, 0, 2, 2}});
  Session other = of({{198, 51, 100, 1}});
  std::vector<std::uint32_t> requests;
  for (Session* const session : {&peer_, &peer_, &peer_, &neighbour, &neighbour, &other, &other}) {
    requests.push_back(message(TransferRole::peer_request, *session));
    events_.add(requests.back());
  }
  EXPECT_EQ(events_.take(100).index, requests[0]) << "as long as none waits they keep their order";
  EXPECT_EQ(events_.take(0).index, kNone);
  for (const std::size_t i : {1, 5, 3, 6, 2, 4}) EXPECT_EQ(events_.take(100).index, requests[i]);
  EXPECT_EQ(events_.take(100).index, kNone);
}

TEST_F(EventQueueTest, passes_over_an_address_that_has_its_share_of_the_applications_places) {
  Session other = of({{198, 51, 100, 1}});
  std::vector<std::uint32_t> requests;
  for (int i = 0; i < 7; ++i) {
    requests.push_back(message(TransferRole::peer_request));
    events_.add(requests.back());
  }
  const std::uint32_t last = message(TransferRole::peer_request, other);
  events_.add(last);
  PeerGroups::Turns& turns = groups_.turns_of(peer_.address_group);
  turns.taken = groups_.turns_of(groups_.prefix_of(peer_.address_group)).taken = 7;  // of nine places
  EXPECT_EQ(events_.take(2).index, requests[0]);
  events_.begin_request(messages_[requests[0]]);
  EXPECT_EQ(events_.take(1).index, last);
  EXPECT_EQ(events_.take(1).index, kNone);
  EXPECT_EQ(events_.take(2).index, kNone) << "until one that it has is over";
  events_.end_request(messages_[requests[0]]);
  EXPECT_EQ(events_.take(1).index, requests[1]);
  events_.begin_request(messages_[requests[1]]);
  EXPECT_EQ(events_.take(1).index, kNone);
  EXPECT_EQ(events_.take(0).index, kNone);
  events_.end_request(messages_[requests[1]]);
  for (int i = 2; i < 7; ++i) EXPECT_EQ(events_.take(100).index, requests[i]);
  turns.taken = groups_.turns_of(groups_.prefix_of(peer_.address_group)).taken = 0;
}

TEST_F(EventQueueTest, alternates_waiting_requests_with_other_events) {
  const std::uint32_t first = message(TransferRole::peer_request);
  const std::uint32_t second = message(TransferRole::peer_request);
  const std::uint32_t sent = message(TransferRole::own_message);
  const std::uint32_t third = message(TransferRole::peer_request);
  for (const std::uint32_t index : {first, second, sent, third}) events_.add(index);
  events_.set_requests_aside();
  for (const std::uint32_t index : {first, sent, second, third}) EXPECT_EQ(events_.take(100).index, index);
  EXPECT_EQ(events_.take(100).index, kNone);
}

TEST_F(EventQueueTest, goes_on_after_the_last_one_has_left) {
  Session& session = *sessions_.take(PeerAddress{});
  const std::uint32_t request = message(TransferRole::peer_request);
  const std::uint32_t sent = message(TransferRole::own_message);
  events_.add_opened(session);
  EXPECT_EQ(events_.take(100).of, EventLink::Of::opened);
  events_.add(request);
  EXPECT_EQ(events_.take(0).index, kNone);
  events_.add(sent);
  EXPECT_EQ(events_.take(0).index, sent);
  events_.add_lost(session);
  EXPECT_EQ(events_.take(100).index, request);
  EXPECT_EQ(events_.take(100).of, EventLink::Of::lost);
  EXPECT_EQ(events_.take(100).index, kNone);
}

}  // namespace
}  // namespace warpline::message
