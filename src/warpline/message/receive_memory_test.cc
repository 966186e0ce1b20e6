// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/receive_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::message {
namespace {

WARPLINE_PROPERTY(ReceiveMemory, gives_what_nobody_else_has, ()) {
  // One number of rapidcheck's a case: thousands of them take longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  };
  const auto blocks = between(1, 70);
  ReceiveMemory memory(static_cast<std::uint64_t>(blocks) * ReceiveMemory::kMinBlock);
  const std::uint64_t whole = memory.free_bytes();
  RC_ASSERT(whole == static_cast<std::uint64_t>(blocks) * ReceiveMemory::kMinBlock);
  struct Taken {
    std::size_t length;
    std::uint8_t mark;
  };
  std::map<std::uint8_t*, Taken> taken;
  for (int step = 0; step < 200; ++step) {
    if (between(0, 3) != 0) {
      const auto length = static_cast<std::size_t>(between(0, 40'000));
      std::uint8_t* buffer = memory.take(length);
      if (buffer == nullptr) continue;
      const auto mark = static_cast<std::uint8_t>(step);
      std::memset(buffer, mark, length);
      RC_ASSERT(taken.emplace(buffer, Taken{length, mark}).second);
    } else if (!taken.empty()) {
      auto any = taken.begin();
      std::advance(any, between(0, static_cast<int>(taken.size())));
      const std::vector<std::uint8_t> marks(any->second.length, any->second.mark);
      RC_ASSERT(std::equal(marks.begin(), marks.end(), any->first));
      memory.give(any->first);
      taken.erase(any);
    }
  }
  for (const auto& [buffer, unused] : taken) memory.give(buffer);
  RC_ASSERT(memory.free_bytes() == whole);
}

TEST(ReceiveMemory, becomes_one_piece_again) {
  ReceiveMemory memory(16 * ReceiveMemory::kMinBlock);
  std::uint8_t* pieces[16];
  for (auto& piece : pieces) ASSERT_NE(piece = memory.take(1), nullptr);
  EXPECT_EQ(memory.take(1), nullptr);
  for (auto& piece : pieces) memory.give(piece);
  EXPECT_NE(memory.take(16 * ReceiveMemory::kMinBlock), nullptr);
}

TEST(ReceiveMemory, refuses_what_it_never_has) {
  ReceiveMemory none(0);
  EXPECT_EQ(none.take(0), nullptr);
  ReceiveMemory memory(3 * ReceiveMemory::kMinBlock);
  EXPECT_EQ(memory.take(~std::uint64_t{0}), nullptr);
}

}  // namespace
}  // namespace warpline::message
