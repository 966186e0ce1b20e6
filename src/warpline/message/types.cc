// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/types.h"

#include <algorithm>

#include "warpline/message/counters.h"

namespace warpline::message {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

PeerAddress peer_address(const IpAddress& ip, std::uint16_t port) {
  PeerAddress peer;
  peer.port = port;
  if (const auto* v4 = std::get_if<Ipv4Address>(&ip)) {
    std::copy(kMapped.begin(), kMapped.end(), peer.ip.begin());
    std::copy(v4->bytes.begin(), v4->bytes.end(), peer.ip.begin() + kMapped.size());
  } else {
    peer.ip = std::get<Ipv6Address>(ip).bytes;
  }
  return peer;
}

PeerAddress peer_address(const SocketAddress& address) {
  PeerAddress peer = peer_address(address.address, address.port);
  peer.scope = address.scope;
  return peer;
}

IpAddress ip_address(const PeerAddress& peer) {
  if (!std::equal(kMapped.begin(), kMapped.end(), peer.ip.begin())) return Ipv6Address{peer.ip};
  Ipv4Address v4;
  std::copy(peer.ip.begin() + kMapped.size(), peer.ip.end(), v4.bytes.begin());
  return v4;
}

std::string_view name(MessageStatus status) {
  constexpr std::string_view kNames[] = {"ok", "refused", "too_long", "deadline", "cancelled", "peer_lost"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view name(Reach reach) {
  constexpr std::string_view kNames[] = {"never_sent", "not_handled", "maybe_handled", "handled"};
  return kNames[static_cast<std::size_t>(reach)];
}

std::string_view name(CallStatus status) {
  constexpr std::string_view kNames[] = {"ok",        "unknown_session", "unknown_message", "no_slot",
                                         "no_memory", "too_long",        "not_allowed",     "going_away"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view name(LossReason reason) {
  constexpr std::string_view kNames[] = {"none",        "silent",       "restarted",  "closed",
                                         "closed_here", "no_answer",    "peer_full",  "wrong_version",
                                         "stalled",     "not_accepted", "going_away", "unreachable"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string_view name(MessageDrop reason) {
  constexpr std::string_view kNames[] = {WARPLINE_MESSAGE_DROPS(WARPLINE_ENUM_NAME)};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string_view meaning(MessageDrop reason) {
  constexpr std::string_view kMeanings[] = {WARPLINE_MESSAGE_DROPS(WARPLINE_ENUM_MEANING)};
  return kMeanings[static_cast<std::size_t>(reason)];
}

}  // namespace warpline::message
