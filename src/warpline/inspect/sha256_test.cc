// SPDX-License-Identifier: Apache-2.0
#include "warpline/inspect/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/random.h"

namespace warpline::inspect {
namespace {

std::string hex(const Sha256& sum) {
  std::string text;
  for (const std::uint8_t byte : sum.digest()) text += fmt::format("{:02x}", byte);
  return text;
}

Sha256 sum_of(std::string_view text) {
  Sha256 sum;
  sum.add(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  return sum;
}

// The examples that NIST publishes with FIPS 180-4.
TEST(Sha256, OfTheStandardsExamples) {
  EXPECT_EQ(hex(sum_of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sum_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sum_of(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameHoweverTheStreamIsCut) {
  Random random(1);
  std::vector<std::uint8_t> bytes(1000);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
  Sha256 whole;
  whole.add(bytes.data(), bytes.size());
  for (int run = 0; run < 200; ++run) {
    Sha256 cut;
    while (cut.length() < bytes.size()) {
      const std::uint64_t most = std::min<std::uint64_t>(bytes.size() - cut.length(), 1 + random.below(150));
      cut.add(bytes.data() + cut.length(), most);
    }
    ASSERT_EQ(hex(cut), hex(whole));
  }
}

}  // namespace
}  // namespace warpline::inspect
