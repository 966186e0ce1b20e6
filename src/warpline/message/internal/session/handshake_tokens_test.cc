// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/handshake_tokens.h"

#include <gtest/gtest.h>

namespace warpline::message {
namespace {

constexpr Nanos kNow{std::int64_t{100} << 30};
constexpr Nanos kLater{std::int64_t{109} << 30};

packet::MessageHello proven(const HandshakeTokens& tokens, const PeerAddress& peer) {
  packet::MessageHello hello;
  hello.session = 5;
  hello.nonce = 6;
  hello.token_time = HandshakeTokens::time(kNow);
  hello.token = tokens.token(peer, hello);
  return hello;
}

TEST(HandshakeTokens, prove_this_hello_of_this_peer_for_a_while) {
  const HandshakeTokens tokens(SipKey{1, 2});
  PeerAddress peer;
  peer.port = 1;
  PeerAddress another;
  another.port = 2;
  packet::MessageHello hello = proven(tokens, peer);
  EXPECT_TRUE(tokens.proves(peer, hello, kNow));
  EXPECT_FALSE(tokens.proves(peer, hello, kLater));
  EXPECT_FALSE(tokens.proves(another, hello, kNow));
  EXPECT_FALSE(HandshakeTokens(SipKey{1, 3}).proves(peer, hello, kNow));
  hello.terms.ordered = true;
  EXPECT_FALSE(tokens.proves(peer, hello, kNow));
}

TEST(HandshakeTokens, are_never_the_same_twice) {
  HandshakeTokens tokens(SipKey{1, 2});
  EXPECT_NE(tokens.nonce(), tokens.nonce());
  EXPECT_NE(tokens.cookie(1, 1), tokens.cookie(1, 1));
}

}  // namespace
}  // namespace warpline::message
