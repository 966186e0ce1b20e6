// SPDX-License-Identifier: Apache-2.0
// The packets of message/, and metadata in them: no byte is read beyond what is there, and what is parsed is emitted
// again as it was.

#include <algorithm>

#include "fuzz/packet_input.h"
#include "warpline/message/metadata.h"
#include "warpline/packet/headers/message_header.h"

using namespace warpline;

namespace {

template <typename Packet>
void round_trip(const std::vector<std::uint8_t>& bytes) {
  Packet packet;
  if (packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), packet) != packet::MessageParse::ok) return;
  std::vector<std::uint8_t> again(Packet::kLength);
  if constexpr (requires { packet.length(); }) again.resize(packet.length());
  packet::emit(packet, again.data());
  require(again == bytes, "a handshake packet is emitted as it was");
}

void metadata_round_trip(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint8_t> again(bytes.size());
  message::MetadataWriter writer(again);
  message::MetadataReader reader(bytes);
  while (const auto entry = reader.next()) {
    require(writer.add(*entry), "what was read has room where it was");
    require(message::find_metadata(bytes, entry->key).has_value(), "what was read is found");
  }
  const auto written = writer.bytes();
  require(std::equal(written.begin(), written.end(), bytes.begin()), "it is written as it was");
  require(reader.well_formed() == (written.size() == bytes.size()), "what is left is said to be malformed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> bytes(data, data + size);  // exactly as long, for the sanitizer
  const auto length = static_cast<std::uint32_t>(size);
  static_cast<void>(packet::describe_message(bytes.data(), length));
  metadata_round_trip(bytes);
  if (packet::MessagePrefix::check(bytes.data(), length) != packet::MessageParse::ok) return 0;
  switch (packet::MessagePrefix::type(bytes.data())) {
    case packet::MessagePacketType::hello:
      round_trip<packet::MessageHello>(bytes);
      break;
    case packet::MessagePacketType::challenge:
      round_trip<packet::MessageChallenge>(bytes);
      break;
    case packet::MessagePacketType::accept:
      round_trip<packet::MessageAccept>(bytes);
      break;
    case packet::MessagePacketType::reject:
      round_trip<packet::MessageReject>(bytes);
      break;
    case packet::MessagePacketType::reset:
      round_trip<packet::MessageReset>(bytes);
      break;
    case packet::MessagePacketType::session: {
      packet::MessageHeader header;
      if (packet::parse(bytes.data(), length, header) != packet::MessageParse::ok) break;
      std::vector<std::uint8_t> again(header.length());
      packet::emit(header, again.data());
      std::uint8_t* at = again.data() + packet::MessageHeader::kLength;
      const std::uint8_t* from = bytes.data() + packet::MessageHeader::kLength;
      if (header.has(packet::kMessageHasAck)) {
        packet::emit(packet::load_ack(from), at);
        std::copy_n(from + packet::MessageAck::kLength, 8U * header.ack_words, at + packet::MessageAck::kLength);
        at += header.ack_length();
        from += header.ack_length();
      }
      if (header.has(packet::kMessageBundle)) {
        const std::uint8_t* const end = from + packet::MessageFragment::kLength + header.payload_length;
        again.assign(bytes.begin(), bytes.begin() + (end - bytes.data()));
        packet::emit(header, again.data());
        packet::MessageFragment fragment;
        while (from != end && packet::parse_bundled(from, static_cast<std::uint32_t>(end - from), fragment) ==
                                  packet::MessageParse::ok) {
          packet::emit(fragment, again.data() + (from - bytes.data()));
          from += packet::MessageFragment::kLength + fragment.total;
        }
      } else if (header.has(packet::kMessageHasFragment)) {
        packet::MessageFragment fragment;
        if (packet::parse(from, header.payload_length, fragment) != packet::MessageParse::ok) break;
        packet::emit(fragment, at);
      }
      require(std::equal(again.begin(), again.end(), bytes.begin()), "a session's packet is emitted as it was");
      break;
    }
  }
  return 0;
}
