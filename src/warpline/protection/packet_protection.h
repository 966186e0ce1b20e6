// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "warpline/base/result.h"
#include "warpline/message/protection.h"
#include "warpline/protection/aes_gcm.h"
#include "warpline/protection/key_set.h"

namespace warpline::protection {

/// Is for one endpoint at a time. AES-128-GCM for up to `max_sessions` sessions, between endpoints that were given the
/// same key. Sessions opened here use the first of `keys`; peers may use any. A live session takes 2.3 KiB, which
/// start() allocates. Several protections, each on its endpoint's thread, may share `keys`.
///
/// Each direction of each session has keys of its own (see protection/session_keys.h), so that a packet is good in its
/// place only: not in another session, not sent back, not under another number. They are made of the given key, of the
/// handshake and of an exchange (see protection/key_exchange.h) whose halves are drawn for it and wiped when it is
/// over: who learns the given key later cannot read what was recorded before.
[[nodiscard]] Result<std::unique_ptr<message::PacketProtection>> make_protection(std::shared_ptr<const Keys> keys,
                                                                                 std::uint32_t max_sessions);

/// The same with one key, for good.
[[nodiscard]] Result<std::unique_ptr<message::PacketProtection>> make_protection(const AesKey& key,
                                                                                 std::uint32_t max_sessions);

/// The same with the keys in the file at `path` (see protection/key_file.h).
[[nodiscard]] Result<std::unique_ptr<message::PacketProtection>> load_protection(const std::string& path,
                                                                                 std::uint32_t max_sessions);

}  // namespace warpline::protection
