// SPDX-License-Identifier: Apache-2.0
// The packets of message/: no byte is read beyond what is there, and what is parsed is emitted again as it was.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/packet/message_header.h"

using namespace warpline;

namespace {

template <typename Packet>
void round_trip(const std::vector<std::uint8_t>& bytes) {
  Packet packet;
  if (parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), packet) != MessageParse::ok) return;
  std::vector<std::uint8_t> again(Packet::kLength);
  emit(packet, again.data());
  require(again == bytes, "a handshake packet is emitted as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> bytes(data, data + size);  // exactly as long, for the sanitizer
  const auto length = static_cast<std::uint32_t>(size);
  static_cast<void>(describe_message(bytes.data(), length));
  if (MessagePrefix::check(bytes.data(), length) != MessageParse::ok) return 0;
  switch (MessagePrefix::type(bytes.data())) {
    case MessagePacketType::hello:
      round_trip<MessageHello>(bytes);
      break;
    case MessagePacketType::challenge:
      round_trip<MessageChallenge>(bytes);
      break;
    case MessagePacketType::accept:
      round_trip<MessageAccept>(bytes);
      break;
    case MessagePacketType::reject:
      round_trip<MessageReject>(bytes);
      break;
    case MessagePacketType::reset:
      round_trip<MessageReset>(bytes);
      break;
    case MessagePacketType::session: {
      MessageHeader header;
      if (parse(bytes.data(), length, header) != MessageParse::ok) break;
      std::vector<std::uint8_t> again(header.length());
      emit(header, again.data());
      std::uint8_t* at = again.data() + MessageHeader::kLength;
      const std::uint8_t* from = bytes.data() + MessageHeader::kLength;
      if (header.has(kMessageHasAck)) {
        emit(load_ack(from), at);
        std::copy_n(from + MessageAck::kLength, 8U * header.ack_words, at + MessageAck::kLength);
        at += header.ack_length();
        from += header.ack_length();
      }
      if (header.has(kMessageBundle)) {
        const std::uint8_t* const end = from + MessageFragment::kLength + header.payload_length;
        again.assign(bytes.begin(), bytes.begin() + (end - bytes.data()));
        emit(header, again.data());
        MessageFragment fragment;
        while (from != end &&
               parse_bundled(from, static_cast<std::uint32_t>(end - from), fragment) == MessageParse::ok) {
          emit(fragment, again.data() + (from - bytes.data()));
          from += MessageFragment::kLength + fragment.total;
        }
      } else if (header.has(kMessageHasFragment)) {
        MessageFragment fragment;
        if (parse(from, header.payload_length, fragment) != MessageParse::ok) break;
        emit(fragment, at);
      }
      require(std::equal(again.begin(), again.end(), bytes.begin()), "a session's packet is emitted as it was");
      break;
    }
  }
  return 0;
}
