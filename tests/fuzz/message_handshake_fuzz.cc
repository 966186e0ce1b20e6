// SPDX-License-Identifier: Apache-2.0
// What a stranger can make of an endpoint that listens and one that connects: nothing is kept, no answer is longer than
// the question, and no handshake ends without the packets that only its peer can have sent. With protection or without.

#include <span>

#include "fuzz/packet_input.h"
#include "sim/toy_protection.h"
#include "warpline/message/endpoint.h"
#include "warpline/packet/headers/message_header.h"

using namespace warpline;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  message::EndpointConfig config;
  config.max_sessions = 2;
  config.max_messages = 8;
  config.max_sent_packets = 256;
  config.receive_bytes = 8192;
  config.secret.emplace().fill(0xa7);
  sim::ToyProtection protection(config.max_sessions);
  if ((input.byte() & 1) != 0) config.protection = &protection;
  Nanos now{0};
  message::Endpoint endpoint = message::Endpoint::create(config, now).value();
  const message::PeerAddress stranger = message::peer_address(Ipv4Address{{192, 0, 2, 1}}, 9);
  static_cast<void>(endpoint.connect(message::peer_address(Ipv4Address{{192, 0, 2, 2}}, 9), {}, now));
  std::vector<std::uint8_t> heard(64);
  for (int round = 0; round < 64; ++round) {
    const std::uint8_t type = input.byte();
    // Bytes of the fuzzer with the prefix put right, sometimes those that the endpoint sent before.
    std::vector<std::uint8_t> bytes = type % 4 == 0 ? heard : std::vector<std::uint8_t>(type / 4 + 4U);
    if (type % 4 != 0) {
      for (std::size_t i = 4; i < bytes.size(); ++i) bytes[i] = input.byte();
      packet::MessagePrefix::store(bytes.data(), static_cast<packet::MessagePacketType>(input.byte() % 6), 0, 0);
    }
    const std::size_t at = input.byte();
    if (at < bytes.size()) bytes[at] = input.byte();
    message::Datagram datagram;
    datagram.head = bytes.data();
    datagram.head_length = static_cast<std::uint32_t>(bytes.size());
    datagram.from = stranger;
    endpoint.receive({&datagram, 1}, now);
    std::uint8_t head[message::kMinHeadCapacity];
    message::Outgoing out;
    out.head = head;
    out.head_capacity = sizeof(head);
    std::size_t answered = 0;
    while (endpoint.transmit({&out, 1}, now) != 0) {
      heard.assign(head, head + out.head_length);
      if (out.to != stranger) continue;
      answered += out.length();
      // A challenge makes a good hello.
      packet::MessageChallenge challenge;
      if (packet::MessagePrefix::type(head) == packet::MessagePacketType::challenge &&
          packet::parse(head, out.head_length, challenge) == packet::MessageParse::ok) {
        packet::MessageHello hello{.session = challenge.session,
                                   .nonce = challenge.nonce,
                                   .token = challenge.token,
                                   .token_time = challenge.token_time,
                                   .terms = {.datagram_bytes = 1472, .is_protected = config.protection != nullptr},
                                   .key = sim::ToyProtection::kKey};
        heard.resize(hello.length());
        packet::emit(hello, heard.data());
        if (hello.terms.is_protected &&
            protection.prove_hello(hello.key, std::span(heard).first(packet::MessageHello::kProven), hello.proof)) {
          packet::emit(hello, heard.data());
        }
      }
    }
    require(answered <= bytes.size(), "no answer is longer than the question");
    now.value += 1000;
  }
  message::MessageEvent events[8];
  for (std::size_t n = endpoint.poll(events); n != 0; n = endpoint.poll(events)) {
    for (std::size_t i = 0; i < n; ++i) {
      require(events[i].kind != message::EventKind::connected, "only the peer that was asked can accept");
    }
  }
  require(protection.misused() == 0, "no session begins without a key");
  return 0;
}
