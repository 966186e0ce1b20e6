// SPDX-License-Identifier: Apache-2.0
#include "nccl/wire.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "warpline/base/random.h"

namespace warpline::nccl {
namespace {

Handle some_handle() {
  Handle handle;
  handle.lanes = 3;
  handle.rails = 2;
  handle.addresses[0] = *parse_ip("10.0.0.1");
  handle.addresses[1] = *parse_ip("fd00::1");
  for (IpAddress& address : std::span(handle.addresses).subspan(2)) address = *parse_ip("::");
  handle.ports = {1, 2, 65535};
  handle.listener = 77;
  handle.secret = {1, 2, 3};
  return handle;
}

TEST(Wire, HandlesAreReadAsTheyWereWritten) {
  std::array<std::uint8_t, kHandleBytes> bytes;
  write_handle(some_handle(), bytes);
  EXPECT_EQ(read_handle(bytes), some_handle());
  EXPECT_EQ(attempt_of(bytes), 0U);
  set_attempt(bytes, 9);
  EXPECT_EQ(attempt_of(bytes), 9U);
  EXPECT_EQ(read_handle(bytes), some_handle()) << "an attempt is no part of it";
}

TEST(Wire, HandlesThatMakeNoSenseAreNone) {
  std::array<std::uint8_t, kHandleBytes> bytes{};
  EXPECT_FALSE(read_handle(bytes));
  const auto refused = [&](const auto& change) {
    Handle handle = some_handle();
    change(handle);
    write_handle(handle, bytes);
    return !read_handle(bytes);
  };
  EXPECT_TRUE(refused([](Handle& handle) { handle.lanes = 0; }));
  EXPECT_TRUE(refused([](Handle& handle) { handle.lanes = kMaxLanes + 1; }));
  EXPECT_TRUE(refused([](Handle& handle) { handle.rails = 0; }));
  EXPECT_TRUE(refused([](Handle& handle) { handle.rails = kMaxRails + 1; }));
  EXPECT_TRUE(refused([](Handle& handle) { handle.ports[2] = 0; }));
}

TEST(Wire, JoinsAreReadAsTheyWereWrittenAndNothingElse) {
  const Join join{
      .listener = 5, .secret = {1}, .connection = {2}, .home = 1, .path = 1, .paths = 2, .piece_bytes = 65536};
  auto bytes = write_join(join);
  EXPECT_EQ(read_join(bytes), join);
  EXPECT_FALSE(read_join(std::span(bytes).first(kJoinBytes - 1)));
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    auto damaged = bytes;
    for (std::uint8_t& byte : damaged) byte = static_cast<std::uint8_t>(random.next());
    EXPECT_FALSE(read_join(damaged));
  }
  for (const Join& wrong :
       {Join{.home = 2, .path = 0, .paths = 2, .piece_bytes = 65536}, Join{.path = 2, .paths = 2, .piece_bytes = 65536},
        Join{.path = 0, .paths = 0, .piece_bytes = 65536}, Join{.path = 0, .paths = 1, .piece_bytes = 1},
        Join{.path = 0, .paths = 9, .piece_bytes = 65536}})
    EXPECT_FALSE(read_join(write_join(wrong)));
}

TEST(Wire, PostedGroupsAreReadAsTheyWereWrittenAndNothingElse) {
  Posted posted{.sequence = 0xfffffff0, .count = 2};
  posted.bytes = {7, kMaxBytes};
  posted.tags = {-1, 5};
  std::array<std::uint8_t, kMaxPostedBytes> bytes;
  const std::size_t length = write_posted(posted, bytes);
  const auto read = read_posted(std::span(bytes).first(length));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sequence, posted.sequence);
  EXPECT_EQ(read->count, 2U);
  EXPECT_EQ(read->bytes, posted.bytes);
  EXPECT_EQ(read->tags, posted.tags);
  for (std::size_t cut = 0; cut < length; ++cut) EXPECT_FALSE(read_posted(std::span(bytes).first(cut)));
  posted.bytes[0] = kMaxBytes + 1;
  (void)write_posted(posted, bytes);
  EXPECT_FALSE(read_posted(std::span(bytes).first(length))) << "no receive is so long";
}

TEST(Wire, PieceNamesAreReadAsTheyWereWritten) {
  for (const std::uint32_t slot : {0U, 31U}) {
    for (const std::uint32_t member : {0U, 7U}) {
      for (const std::uint32_t piece : {0U, 127U}) {
        for (const bool last : {false, true}) {
          const PieceName name = name_of(code_of({slot, member, piece, last}));
          EXPECT_EQ(name.slot, slot);
          EXPECT_EQ(name.member, member);
          EXPECT_EQ(name.piece, piece);
          EXPECT_EQ(name.last, last);
        }
      }
    }
  }
}

TEST(Wire, WelcomesAreReadAsTheyWereWrittenAndNothingElse) {
  const auto bytes = write_welcome({.early_bytes = kMostEarlyBytes});
  EXPECT_EQ(read_welcome(bytes), Welcome{.early_bytes = kMostEarlyBytes});
  EXPECT_FALSE(read_welcome(std::span(bytes).first(3)));
  EXPECT_FALSE(read_welcome({}));
  EXPECT_FALSE(read_welcome(write_welcome({.early_bytes = kMostEarlyBytes + 1})));
}

TEST(Wire, EarlyTransfersAreOfTheGroupThatWasMeant) {
  for (const std::uint32_t sequence : {0U, 31U, 32U, 4095U, 4096U, 77'777U, 0xffffffffU}) {
    const PieceName name = name_of(early_code_of(sequence));
    EXPECT_EQ(name.member, kEarlyMember);
    for (const std::uint32_t known : {sequence - 7, sequence, sequence + 1, sequence + 32})
      EXPECT_EQ(early_sequence_of(name, known), sequence) << known;
  }
}

TEST(Wire, NoTransferHasMorePiecesThanHaveNames) {
  for (const std::uint64_t room :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{524288}, std::uint64_t{524289}, kMaxBytes - 1, kMaxBytes}) {
    const std::uint32_t stride = stride_of(static_cast<std::uint32_t>(room), 4096);
    EXPECT_LE((room + stride - 1) / stride, kMaxPieces) << room;
  }
  EXPECT_EQ(stride_of(1000, 65536), 65536U);
}

}  // namespace
}  // namespace warpline::nccl
