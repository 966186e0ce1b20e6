// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace warpline::message {

/// What both ends of a session know after the handshake, besides the key that they were given. Never the same twice.
struct SessionNonces {
  std::uint64_t client = 0;          ///< drawn by the end that opened the session
  std::uint64_t server = 0;          ///< drawn by the end that accepted it
  std::uint32_t client_session = 0;  ///< as on the wire, of the end that opened it
  std::uint32_t server_session = 0;  ///< as on the wire, of the end that accepted it
};

/// Authenticated encryption of the packets of an endpoint's sessions. The header is authenticated and stays readable;
/// its data (see docs/message_format.md) is encrypted in place, the tag follows it. A session's packet number is
/// never used twice in one direction, and the caller sorts out packets that come twice. On the endpoint's
/// thread; no allocation in seal() and open().
class PacketProtection {
 public:
  static constexpr std::uint32_t kTagBytes = 16;  ///< bytes of an authentication tag

  virtual ~PacketProtection() = default;

  /// A session begins (again). `slot` is below EndpointConfig::max_sessions; `client`: this end opened it.
  virtual void start(std::uint32_t slot, const SessionNonces& nonces, bool client) = 0;
  virtual void stop(std::uint32_t slot) = 0;  ///< the session in `slot` has ended: its keys are not needed any more

  /// Encrypts `text` in place and writes the tag of `header` and `text`.
  virtual void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                    std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) = 0;
  /// False, with `text` undefined, if the packet is not the peer's.
  [[nodiscard]] virtual bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
                                  std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) = 0;
};

}  // namespace warpline::message
