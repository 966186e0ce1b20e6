// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_exchange.h"

#include <gtest/gtest.h>

#include <set>

#include "warpline/protection/protection_testing.h"

namespace warpline::protection {
namespace {

TEST(KeyExchange, BothEndsMakeTheSameSecretAndNoTwoPairsDo) {
  std::set<SharedSecret> secrets;
  std::set<message::KeyShare> shares;
  for (int i = 0; i < 20; ++i) {
    KeyExchange one;
    KeyExchange other;
    message::KeyShare of_one;
    message::KeyShare of_other;
    ASSERT_TRUE(one.draw(of_one) && other.draw(of_other));
    SharedSecret here;
    SharedSecret there;
    ASSERT_TRUE(one.agree(of_other, here) && other.agree(of_one, there));
    EXPECT_EQ(here, there);
    secrets.insert(here);
    shares.insert({of_one, of_other});
  }
  EXPECT_EQ(secrets.size(), 20U);
  EXPECT_EQ(shares.size(), 40U);
}

TEST(KeyExchange, APairIsForOneSecret) {
  KeyExchange one;
  KeyExchange other;
  message::KeyShare of_one;
  message::KeyShare of_other;
  SharedSecret secret;
  EXPECT_FALSE(one.agree(message::KeyShare{9}, secret)) << "none is drawn";
  ASSERT_TRUE(one.draw(of_one) && other.draw(of_other));
  ASSERT_TRUE(one.agree(of_other, secret));
  EXPECT_FALSE(one.agree(of_other, secret)) << "it is wiped";
  ASSERT_TRUE(one.draw(of_one));
  one.clear();
  EXPECT_FALSE(one.agree(of_other, secret));
}

TEST(KeyExchange, RefusesSharesThatMakeTheSameSecretOfAnyPair) {
  // Points of small order (RFC 7748, section 6.1), some with the highest bit set, which does not count.
  for (const char* digits : {"0000000000000000000000000000000000000000000000000000000000000000",
                             "0000000000000000000000000000000000000000000000000000000000000080",
                             "0100000000000000000000000000000000000000000000000000000000000000",
                             "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                             "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
                             "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                             "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
                             "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}) {
    KeyExchange exchange;
    message::KeyShare share;
    SharedSecret secret;
    ASSERT_TRUE(exchange.draw(share));
    EXPECT_FALSE(exchange.agree(array_of<message::KeyShare>(digits), secret)) << digits;
  }
}

}  // namespace
}  // namespace warpline::protection
