// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/packet/parse.h"

namespace warpline::vnic {

/// Receive side scaling: Toeplitz hash over the fields that are enabled, an indirection table that turns it into a
/// queue. (Microsoft: "RSS hashing functions"; verified with its published vectors.)
class Rss {
 public:
  static constexpr std::size_t kKeyBytes = 40;     ///< that the hash reads
  static constexpr std::size_t kMaxKeyBytes = 52;  ///< of keys whose rest nothing reads
  static constexpr std::uint16_t kTableSize = 512;
  static constexpr std::size_t kMaxInput = kKeyBytes - 4;  ///< IPv6 addresses and ports

  /// Microsoft's key, no fields, all to queue 0.
  Rss();
  /// kKeyBytes to kMaxKeyBytes.
  void set_key(std::span<const std::uint8_t> key);
  [[nodiscard]] std::span<const std::uint8_t> key() const { return {key_.data(), key_bytes_}; }
  /// Another length of keys, whose rest is zeros until one is set.
  void set_key_bytes(std::size_t bytes) { key_bytes_ = bytes; }
  /// RTE_ETH_RSS_* bits; 0: everything goes to queue 0. TCP and UDP are hashed with ports where their bit is set, with
  /// the addresses alone where only IPv4's or IPv6's is, as is every other packet of IP.
  void set_fields(std::uint64_t rss_hf) { fields_ = rss_hf; }
  [[nodiscard]] std::uint64_t fields() const { return fields_; }
  [[nodiscard]] static std::uint64_t supported_fields();
  /// Entry i gets queue i % queues.
  void reset_table(std::uint16_t queues);
  std::array<std::uint16_t, kTableSize> table{};
  std::uint16_t entries = kTableSize;  ///< of the table, those that are used

  /// Toeplitz hash of `length` bytes, kMaxInput at most.
  [[nodiscard]] std::uint32_t hash(const std::uint8_t* bytes, std::size_t length) const;

  struct Choice {
    std::uint16_t queue = 0;
    std::uint32_t hash = 0;
    bool hashed = false;  ///< some enabled field was there
  };
  /// `frame`: contiguous, as parsed.
  [[nodiscard]] Choice steer(const std::uint8_t* frame, const packet::ParsedFrame& parsed) const;

 private:
  std::array<std::uint8_t, kMaxKeyBytes> key_{};
  std::size_t key_bytes_ = kKeyBytes;
  std::uint64_t fields_ = 0;
  /// For each input nibble's place and value, what it adds to the hash: 4.5 KB, of which IPv4 touches a third.
  std::array<std::array<std::uint32_t, 16>, kMaxInput * 2> contribution_;
};

}  // namespace warpline::vnic
