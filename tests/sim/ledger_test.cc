// SPDX-License-Identifier: Apache-2.0
#include "sim/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sim/content.h"

namespace warpline::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// One request of 100 B from host 0 to host 1, answered by 50 B.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() : message_(100), answer_(50) {
    ledger_.add({.from = 0, .to = 1, .length = 100, .answer_length = 50, .answer_room = 50});
    fill_content(message_.data(), 100, Ledger::content(0, 0, false));
    fill_content(answer_.data(), 50, Ledger::content(0, 0, true));
  }

  void handle() {
    message::MessageEvent event;
    event.kind = message::EventKind::request;
    event.data = message_.data();
    event.length = static_cast<std::uint32_t>(message_.size());
    ledger_.handled(1, 0, event);
  }
  void complete(message::MessageStatus status, message::Reach reach = message::Reach::maybe_handled) {
    message::MessageEvent event;
    event.kind = message::EventKind::response;
    event.status = status;
    event.reach = reach;
    event.data = answer_.data();
    event.length = static_cast<std::uint32_t>(answer_.size());
    ledger_.completed(0, 0, event);
  }

  Ledger ledger_{2};
  std::vector<std::uint8_t> message_;
  std::vector<std::uint8_t> answer_;
};

TEST_F(LedgerTest, HasNothingToSayIfAllIsWell) {
  handle();
  complete(message::MessageStatus::ok);
  ledger_.finish({});
  EXPECT_THAT(ledger_.failures(), ElementsAre());
}

TEST_F(LedgerTest, ExcusesTheLossOfHostsThatHeardNextToNothing) {
  complete(message::MessageStatus::peer_lost);
  for (const std::vector<bool>& deaf : {std::vector{false, true}, std::vector{true, false}}) {
    ledger_.finish({.deaf = deaf});
    EXPECT_THAT(ledger_.failures(), ElementsAre());
  }
  ledger_.finish({.deaf = {false, false}});
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("though nothing happened to the peer")));
}

TEST_F(LedgerTest, NoticesASecondHandling) {
  handle();
  handle();
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("for the 2. time")));
}

TEST_F(LedgerTest, NoticesASecondCompletion) {
  handle();
  complete(message::MessageStatus::ok);
  complete(message::MessageStatus::ok);
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("for the 2. time")));
}

TEST_F(LedgerTest, NoticesAMissingCompletion) {
  handle();
  ledger_.finish({});
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("never ended")));
}

TEST_F(LedgerTest, NoticesSuccessWithoutHandling) {
  complete(message::MessageStatus::ok);
  ledger_.finish({});
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("was never handled")));
}

TEST_F(LedgerTest, NoticesAByteThatDiffers) {
  message_[99] ^= 1;
  handle();
  answer_[0] ^= 1;
  complete(message::MessageStatus::ok);
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("its bytes differ"), HasSubstr("the answer's bytes differ")));
}

TEST_F(LedgerTest, NoticesMetadataAndDeadlinesThatDiffer) {
  const std::vector<std::uint8_t> told(3);
  message::MessageEvent event;
  event.kind = message::EventKind::request;
  event.data = message_.data();
  event.length = static_cast<std::uint32_t>(message_.size());
  const message::ReceivedHead head{.metadata = told, .deadline = Nanos{1}};
  event.head = &head;
  ledger_.handled(1, 0, event);
  event.kind = message::EventKind::response;
  event.data = answer_.data();
  event.length = static_cast<std::uint32_t>(answer_.size());
  ledger_.completed(0, 0, event);
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("has a deadline differs"), HasSubstr("its metadata differs"),
                                              HasSubstr("the answer's metadata differs")));
}

TEST_F(LedgerTest, NoticesALengthThatDiffers) {
  message_.pop_back();
  handle();
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("99 B instead of 100")));
}

TEST_F(LedgerTest, NoticesEndsWithoutCause) {
  for (const message::MessageStatus status :
       {message::MessageStatus::refused, message::MessageStatus::too_long, message::MessageStatus::deadline,
        message::MessageStatus::cancelled, message::MessageStatus::peer_lost}) {
    Ledger ledger(2);
    ledger.add({.from = 0, .to = 1});
    message::MessageEvent event;
    event.status = status;
    ledger.completed(0, 0, event);
    ledger.finish({});
    EXPECT_EQ(ledger.failures().size(), 1U) << message::name(status);
  }
}

TEST_F(LedgerTest, NoticesAReachThatIsNotTrue) {
  complete(message::MessageStatus::peer_lost, message::Reach::handled);
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("as handled, which it was not")));
}

TEST_F(LedgerTest, NoticesWhatIsHandledThoughItShouldNotBe) {
  for (const message::Reach reach : {message::Reach::never_sent, message::Reach::not_handled}) {
    Ledger ledger(2);
    ledger.add({.from = 0, .to = 1, .may_be_cancelled = true});
    message::MessageEvent event;
    event.status = message::MessageStatus::cancelled;
    event.reach = reach;
    ledger.completed(0, 0, event);
    event.kind = message::EventKind::request;
    ledger.handled(1, 0, event);
    ledger.finish({});
    EXPECT_THAT(ledger.failures(), ElementsAre(HasSubstr("was handled, told as"))) << message::name(reach);
  }
}

TEST_F(LedgerTest, NoticesWhatWasNeverSent) {
  message::MessageEvent event;
  event.code = 5;
  EXPECT_EQ(ledger_.handled(1, 0, event), nullptr);
  EXPECT_THAT(ledger_.failures(), ElementsAre(HasSubstr("never sent")));
}

}  // namespace
}  // namespace warpline::sim
