// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/timers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace warpline::message {
namespace {

class TimersTest : public ::testing::Test {
 protected:
  static EndpointConfig config() {
    EndpointConfig config;
    config.max_sessions = 1;
    return config;
  }
  /// How often the session's wait for its pace ends until then.
  int paced_until(std::int64_t nanos) {
    endpoint_.enter(Nanos{nanos});
    int fired = 0;
    timers_.advance([&](Session&, Timers::Timer timer) { fired += timer == Timers::Timer::pacing ? 1 : 0; });
    return fired;
  }
  void pace(Session& session, std::int64_t wait) {
    session.send_at = endpoint_.in(wait);
    timers_.pace(session);
  }

  EndpointContext endpoint_{config(), Nanos{}};
  SessionTable sessions_{config(), SipKey{1, 2}};
  Timers timers_{endpoint_, sessions_};
};

TEST_F(TimersTest, WaitForThePaceOfAnotherPathDoesNotHoldUpASession) {
  Session& session = *sessions_.take(PeerAddress{});
  pace(session, 1'000'000'000);
  timers_.cancel_pacing(session);
  pace(session, 10'000);
  EXPECT_EQ(paced_until(20'000), 1);
  EXPECT_EQ(paced_until(2'000'000'000), 0);
}

TEST_F(TimersTest, WaitForThePaceOfASessionThatHasEndedDoesNotHoldUpTheNextInItsPlace) {
  Session* session = sessions_.take(PeerAddress{});
  pace(*session, 1'000'000'000);
  timers_.cancel(*session);
  sessions_.give(*session);
  session = sessions_.take(PeerAddress{});
  pace(*session, 10'000);
  EXPECT_EQ(paced_until(20'000), 1);
  EXPECT_EQ(paced_until(2'000'000'000), 0);
}

}  // namespace
}  // namespace warpline::message
