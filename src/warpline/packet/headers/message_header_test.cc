// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/headers/message_header.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline::packet {
namespace {

/// A session's packet with everything that one can have.
std::vector<std::uint8_t> full_packet() {
  MessageHeader header;
  header.flags = kMessageHasAck | kMessageHasFragment | kMessagePrompt | kMessageProtected;
  header.ack_words = 2;
  header.session = 0x01020304;
  header.cookie = 0x1122334455667788;
  header.packet_number = 0x0a0b0c0d0e0f;
  header.floor_distance = 0x0102;
  header.payload_length = 3;
  std::vector<std::uint8_t> bytes(header.length() + 3 + kMessageTagLength);
  emit(header, bytes.data());
  emit(MessageAck{7, 8, 9, 10}, bytes.data() + 28);
  MessageFragment fragment;
  fragment.kind = FragmentKind::response;
  fragment.flags = MessageFragment::kMore | MessageFragment::kHigh;
  fragment.slot = 5;
  fragment.code = 0x0607;
  fragment.sequence = 11;
  fragment.offset = 12;
  fragment.total = 15;
  fragment.order = 13;
  emit(fragment, bytes.data() + 28 + 16 + 16);
  return bytes;
}

TEST(MessageHeader, lies_where_the_document_says) {
  const std::vector<std::uint8_t> bytes = full_packet();
  ASSERT_EQ(bytes.size(), 28U + 16 + 16 + 20 + 3 + 16);
  const std::vector<std::uint8_t> fixed(bytes.begin(), bytes.begin() + 28);
  EXPECT_EQ(fixed,
            (std::vector<std::uint8_t>{0x57, 0x24, 0x27, 2, 1,    2,    3,    4,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
                                       0x77, 0x88, 0,    0, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 1,    2,    0,    3}));
  const std::vector<std::uint8_t> fragment(bytes.begin() + 60, bytes.begin() + 80);
  EXPECT_EQ(fragment, (std::vector<std::uint8_t>{0x92, 5, 6, 7, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 15, 0, 13, 0, 0}));
}

TEST(MessageHeader, comes_back_as_it_was) {
  const std::vector<std::uint8_t> bytes = full_packet();
  MessageHeader header;
  ASSERT_EQ(parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header), MessageParse::ok);
  EXPECT_EQ(header.cookie, 0x1122334455667788U);
  EXPECT_EQ(header.packet_number, 0x0a0b0c0d0e0fU);
  EXPECT_EQ(header.floor_distance, 0x0102);
  EXPECT_EQ(load_ack(bytes.data() + 28), (MessageAck{7, 8, 9, 10}));
  MessageFragment fragment;
  ASSERT_EQ(parse(bytes.data() + 60, header.payload_length, fragment), MessageParse::ok);
  EXPECT_EQ(fragment.flags, MessageFragment::kMore | MessageFragment::kHigh);
  EXPECT_EQ(fragment.kind, FragmentKind::response);
}

TEST(MessageHeader, of_any_other_length_is_refused) {
  std::vector<std::uint8_t> bytes = full_packet();
  const auto whole = static_cast<std::uint32_t>(bytes.size());
  MessageHeader header;
  for (std::uint32_t length = 0; length < whole; ++length) {
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + length);
    EXPECT_EQ(parse(cut.data(), length, header), MessageParse::truncated) << length;
  }
  bytes.push_back(0);
  EXPECT_EQ(parse(bytes.data(), whole + 1, header), MessageParse::malformed);
}

TEST(MessageHeader, that_contradicts_itself_is_refused) {
  const auto changed = [](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> bytes = full_packet();
    bytes[at] = value;
    MessageHeader header;
    return parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header);
  };
  EXPECT_EQ(changed(2, 0xa7), MessageParse::malformed);  // protected, and another follows
  EXPECT_EQ(changed(2, 0x26), MessageParse::malformed);  // words without acknowledgement
  EXPECT_EQ(changed(2, 0x25), MessageParse::malformed);  // payload without fragment
  EXPECT_EQ(changed(3, 17), MessageParse::malformed);    // more words than there may be
  EXPECT_EQ(changed(3, 16), MessageParse::truncated);    // more than there are
}

TEST(MessageFragment, must_lie_inside_of_its_message) {
  MessageFragment fragment;
  fragment.offset = 10;
  fragment.total = 14;
  std::vector<std::uint8_t> bytes(MessageFragment::kLength);
  emit(fragment, bytes.data());
  EXPECT_EQ(parse(bytes.data(), 4, fragment), MessageParse::ok);
  EXPECT_EQ(parse(bytes.data(), 5, fragment), MessageParse::malformed);
  bytes[0] = 0;
  EXPECT_EQ(parse(bytes.data(), 4, fragment), MessageParse::malformed);
  bytes[0] = 11;
  EXPECT_EQ(parse(bytes.data(), 4, fragment), MessageParse::malformed);
}

TEST(MessageFragment, has_a_head_within_its_message_or_none) {
  const auto verdict = [](const MessageFragment& fragment) {
    std::vector<std::uint8_t> bytes(MessageFragment::kLength);
    emit(fragment, bytes.data());
    MessageFragment read;
    const MessageParse parsed = parse(bytes.data(), fragment.total, read);
    EXPECT_EQ(read, fragment);
    return parsed;
  };
  constexpr MessageParse kBad = MessageParse::malformed;
  for (const FragmentKind kind : {FragmentKind::request, FragmentKind::response, FragmentKind::message}) {
    EXPECT_EQ(verdict({.kind = kind, .total = 8, .head = 8}), MessageParse::ok);
    EXPECT_EQ(verdict({.kind = kind, .total = 9, .head = 7}), kBad);
    EXPECT_EQ(verdict({.kind = kind, .total = 8, .head = 9}), kBad);
    EXPECT_EQ(verdict({.kind = kind, .total = 9999, .head = 8 + 1024}), MessageParse::ok);
    EXPECT_EQ(verdict({.kind = kind, .total = 9999, .head = 8 + 1025}), kBad);
  }
  EXPECT_EQ(verdict({.kind = FragmentKind::grant, .total = 100, .head = 8}), kBad);
  EXPECT_EQ(verdict({.kind = FragmentKind::cancel, .total = 100, .head = 8}), kBad);
}

TEST(MessageFragment, of_a_stream_or_high_is_a_message) {
  for (const std::uint8_t flags : {MessageFragment::kStream, MessageFragment::kHigh}) {
    for (std::uint8_t kind = 1; kind <= 10; ++kind) {
      std::vector<std::uint8_t> bytes(MessageFragment::kLength);
      const MessageFragment fragment{.kind = static_cast<FragmentKind>(kind), .flags = flags, .total = 20};
      emit(fragment, bytes.data());
      MessageFragment read;
      const MessageParse parsed = parse(bytes.data(), 20, read);
      EXPECT_EQ(parsed, kind <= 3 ? MessageParse::ok : MessageParse::malformed);
      if (kind <= 3) {
        EXPECT_EQ(read, fragment);
      }
    }
  }
}

TEST(MessageStreamHead, says_only_what_its_kind_may) {
  using Kind = MessageStreamHead::Kind;
  const auto verdict = [](const MessageStreamHead& head, std::uint32_t length = MessageStreamHead::kLength) {
    std::vector<std::uint8_t> bytes(MessageStreamHead::kLength);
    emit(head, bytes.data());
    MessageStreamHead read;
    const MessageParse parsed = parse(bytes.data(), length, read);
    EXPECT_TRUE(parsed == MessageParse::truncated || read == head);
    return parsed;
  };
  constexpr MessageParse kBad = MessageParse::malformed;
  EXPECT_EQ(verdict({Kind::open, 0, 5, 0, 0xffffffff}, 99), MessageParse::ok);
  EXPECT_EQ(verdict({Kind::open, 1, 5, 0, 7}), kBad);
  EXPECT_EQ(verdict({Kind::open, 0, 5, 1, 7}), kBad);
  EXPECT_EQ(verdict({Kind::open, 0, 0, 0, 7}), kBad);
  EXPECT_EQ(verdict({Kind::piece, 4, 5, 0xffffffff, 7}, 21), MessageParse::ok);
  EXPECT_EQ(verdict({Kind::piece, 0, 5, 0, 7}, 21), kBad);
  EXPECT_EQ(verdict({Kind::piece, 4, 5, 0, 7}, 19), MessageParse::truncated);
  EXPECT_EQ(verdict({Kind::end, 4, 5, 3, 7}), MessageParse::ok);
  EXPECT_EQ(verdict({Kind::end, 4, 5, 3, 7}, 21), kBad);
  EXPECT_EQ(verdict({Kind::credit, 4, 5, 0, 7}), MessageParse::ok);
  EXPECT_EQ(verdict({Kind::credit, 4, 5, 1, 7}), kBad);
  EXPECT_EQ(verdict({Kind::answer, 4, 5, 3, 7}, 99), MessageParse::ok);
  EXPECT_EQ(verdict({Kind{0}, 4, 5, 0, 7}), kBad);
  EXPECT_EQ(verdict({Kind{6}, 4, 5, 0, 7}), kBad);
}

TEST(MessageFragment, of_several_says_their_size_and_that_the_length_of_a_head_follows) {
  const auto verdict = [](const MessageFragment& fragment, std::uint32_t payload_length) {
    std::vector<std::uint8_t> bytes(MessageFragment::kLength);
    emit(fragment, bytes.data());
    MessageFragment read;
    const MessageParse parsed = parse(bytes.data(), payload_length, read);
    if (parsed == MessageParse::ok) {
      EXPECT_EQ(read, fragment);
    }
    return parsed;
  };
  constexpr MessageParse kBad = MessageParse::malformed;
  MessageFragment fragment{.offset = 200, .total = 300, .fragment_bytes = 200};
  EXPECT_EQ(verdict(fragment, 100), MessageParse::ok);
  EXPECT_EQ(verdict(fragment, 101), kBad);
  fragment.head_follows = true;
  EXPECT_EQ(verdict(fragment, 102), MessageParse::ok);
  EXPECT_EQ(verdict(fragment, 103), kBad);
  EXPECT_EQ(verdict(fragment, 1), kBad);
  fragment.kind = FragmentKind::grant;
  EXPECT_EQ(verdict(fragment, 2), kBad);
}

TEST(MessagePathCheck, stands_alone_in_its_packet) {
  std::array<std::uint8_t, MessageHeader::kLength + MessagePathCheck::kLength + kMessageTagLength + 8> bytes{};
  const auto parsed = [&](std::uint8_t flags, std::uint16_t payload) {
    const MessageHeader header{.flags = flags, .packet_number = 5, .payload_length = payload};
    emit(header, bytes.data());
    MessageHeader read;
    const std::uint32_t tag = (flags & kMessageProtected) != 0 ? kMessageTagLength : 0;
    const MessageParse answer = parse(bytes.data(), MessageHeader::kLength + payload + tag, read);
    EXPECT_EQ(answer == MessageParse::ok && read.checks_path(), answer == MessageParse::ok);
    return answer;
  };
  EXPECT_EQ(parsed(kMessageBundle, 16), MessageParse::ok);
  EXPECT_EQ(parsed(kMessageBundle | kMessageProtected, 16), MessageParse::ok);
  for (const std::uint16_t length : {0, 15, 17}) EXPECT_EQ(parsed(kMessageBundle, length), MessageParse::malformed);
  for (const std::uint8_t flag : {kMessageHasAck, kMessagePrompt, kMessagePing, kMessageClose, kMessageFollowed}) {
    EXPECT_EQ(parsed(kMessageBundle | flag, 16), MessageParse::malformed) << int{flag};
  }
}

TEST(MessagePathCheck, comes_back_as_it_was) {
  std::array<std::uint8_t, MessagePathCheck::kLength> bytes{};
  for (const auto kind : {MessagePathCheck::Kind::challenge, MessagePathCheck::Kind::response}) {
    const MessagePathCheck check{kind, 0x01020304, 0x1122334455667788};
    emit(check, bytes.data());
    MessagePathCheck read;
    ASSERT_EQ(parse(bytes.data(), read), MessageParse::ok);
    EXPECT_EQ(read, check);
  }
  MessagePathCheck read;
  for (const std::size_t at : {0, 1, 2, 3}) {
    emit(MessagePathCheck{}, bytes.data());
    bytes[at] ^= 4;
    EXPECT_EQ(parse(bytes.data(), read), MessageParse::malformed) << at;
  }
}

TEST(MessageFragment, of_a_bundle_is_a_whole_message) {
  MessageFragment fragment;
  fragment.total = 14;
  std::vector<std::uint8_t> bytes(MessageFragment::kLength);
  emit(fragment, bytes.data());
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength + 14, fragment), MessageParse::ok);
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength + 99, fragment), MessageParse::ok);
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength + 13, fragment), MessageParse::malformed);
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength - 1, fragment), MessageParse::malformed);
  fragment.head_follows = true;
  emit(fragment, bytes.data());
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength + 14, fragment), MessageParse::malformed);
  fragment.head_follows = false;
  fragment.offset = 1;
  emit(fragment, bytes.data());
  EXPECT_EQ(parse_bundled(bytes.data(), MessageFragment::kLength + 14, fragment), MessageParse::malformed);
}

TEST(MessagePrefix, tells_foreign_packets) {
  std::vector<std::uint8_t> bytes{0x57, 0x24, 0, 0};
  EXPECT_EQ(MessagePrefix::check(bytes.data(), 4), MessageParse::ok);
  EXPECT_EQ(MessagePrefix::check(bytes.data(), 3), MessageParse::truncated);
  bytes[1] = 0x34;
  EXPECT_EQ(MessagePrefix::check(bytes.data(), 4), MessageParse::version);
  bytes[1] = 0x26;
  EXPECT_EQ(MessagePrefix::check(bytes.data(), 4), MessageParse::type);
  bytes[0] = 0x56;
  EXPECT_EQ(MessagePrefix::check(bytes.data(), 4), MessageParse::not_ours);
}

TEST(MessageHello, is_longer_than_its_answers) {
  EXPECT_GE(MessageHello::kLength, MessageChallenge::kLength);
  EXPECT_GE(MessageHello::kLength, MessageAccept::kLength);
  EXPECT_GE(MessageHello::kProtectedLength, MessageAccept::kProtectedLength);
  EXPECT_GE(MessageHello::kLength, MessageReject::kLength);
  EXPECT_GE(MessageHeader::kLength, MessageReset::kLength);
}

/// As it is written, and what parse() says of the first `length` bytes of it, with one byte changed or none.
template <typename Packet>
MessageParse verdict_on(const Packet& packet, std::uint32_t length, std::uint32_t at = 0, std::uint8_t change = 0) {
  std::vector<std::uint8_t> bytes(200);
  emit(packet, bytes.data());
  bytes[at] ^= change;
  Packet read;
  const MessageParse verdict = parse(bytes.data(), length, read);
  if (verdict == MessageParse::ok) {
    EXPECT_EQ(read == packet, change == 0);
  }
  return verdict;
}

TEST(MessageHello, grows_only_where_it_is_protected) {
  MessageHello hello{.session = 1, .nonce = 2, .terms = {.datagram_bytes = 1472}};
  EXPECT_EQ(hello.length(), MessageHello::kLength);
  EXPECT_EQ(verdict_on(hello, 64), MessageParse::ok);
  EXPECT_EQ(verdict_on(hello, 63), MessageParse::truncated);
  EXPECT_EQ(verdict_on(hello, 96), MessageParse::malformed);
  EXPECT_EQ(verdict_on(hello, 64, 63, 1), MessageParse::malformed) << "what means nothing is zero";
  EXPECT_EQ(verdict_on(hello, 64, 30, 4), MessageParse::truncated) << "it says protected";
  hello.terms.is_protected = true;
  hello.key = 3;
  hello.share.fill(4);
  hello.proof.fill(5);
  EXPECT_EQ(hello.length(), MessageHello::kProtectedLength);
  EXPECT_EQ(verdict_on(hello, 96), MessageParse::ok);
  EXPECT_EQ(verdict_on(hello, 95), MessageParse::truncated);
  EXPECT_EQ(verdict_on(hello, 97), MessageParse::malformed);
  EXPECT_EQ(verdict_on(hello, 96, 30, 4), MessageParse::malformed) << "it says not protected";
  EXPECT_EQ(verdict_on(hello, 96, 95, 1), MessageParse::ok);
}

TEST(MessageAccept, grows_only_where_it_is_protected) {
  MessageAccept accept{.session = 1, .nonce = 2, .cookie = 3, .terms = {.datagram_bytes = 1472}};
  EXPECT_EQ(accept.length(), MessageAccept::kLength);
  EXPECT_EQ(verdict_on(accept, 64), MessageParse::ok);
  EXPECT_EQ(verdict_on(accept, 63), MessageParse::truncated);
  EXPECT_EQ(verdict_on(accept, 96), MessageParse::malformed);
  EXPECT_EQ(verdict_on(accept, 64, 63, 1), MessageParse::malformed) << "what means nothing is zero";
  accept.terms.is_protected = true;
  accept.share.fill(4);
  accept.proof.fill(5);
  EXPECT_EQ(accept.length(), MessageAccept::kProtectedLength);
  EXPECT_EQ(verdict_on(accept, 96), MessageParse::ok);
  EXPECT_EQ(verdict_on(accept, 95), MessageParse::truncated);
  EXPECT_EQ(verdict_on(accept, 97), MessageParse::malformed);
  EXPECT_EQ(verdict_on(accept, 96, 95, 1), MessageParse::ok);
}

}  // namespace
}  // namespace warpline::packet
