// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/protection.h"

namespace warpline::sim {

/// Stands in for real encryption: hides the text, notices damage and packets of other sessions, and keeps no secret.
/// Complains about a packet number that is sealed twice.
class ToyProtection final : public message::PacketProtection {
 public:
  static constexpr message::KeyId kKey = 1;  ///< the only one

  explicit ToyProtection(std::uint32_t slots) : slots_(slots) {}

  [[nodiscard]] std::uint32_t max_sessions() const override { return static_cast<std::uint32_t>(slots_.size()); }

  bool prove_hello(message::KeyId key, std::span<const std::uint8_t> hello, message::HandshakeProof& proof) override {
    const std::uint64_t sum = digest(key, hello, {});
    for (std::size_t i = 0; i < proof.size(); ++i) proof[i] = static_cast<std::uint8_t>(mix64(sum + i));
    return key == kKey;
  }
  bool offer(std::uint32_t slot) override { return answer(slot, kKey); }
  bool answer(std::uint32_t slot, message::KeyId key) override {
    slots_[slot] = {};
    slots_[slot].name = key;
    slots_[slot].secret = ++drawn_;
    return key == kKey;
  }
  [[nodiscard]] message::KeyId key(std::uint32_t slot) const override { return slots_[slot].name; }
  [[nodiscard]] message::KeyShare share(std::uint32_t slot) const override {
    message::KeyShare share{};
    share[0] = static_cast<std::uint8_t>(slots_[slot].secret);
    return share;
  }
  bool prove(std::uint32_t slot, std::span<const std::uint8_t> handshake, message::HandshakeProof& proof) override {
    return prove_hello(slots_[slot].name, handshake, proof);
  }
  bool start(std::uint32_t slot, const message::KeyShare& peer, const message::HandshakeTranscript& handshake,
             bool client) override {
    Slot& state = slots_[slot];
    if (state.name == 0 || state.started) ++misused_;
    const std::uint64_t shared = (state.secret & 0xff) ^ peer[0];
    state = {state.name, state.secret, mix64(digest(2, handshake, {}) ^ shared), client, true, 0};
    return true;
  }
  void stop(std::uint32_t slot) override { slots_[slot] = {}; }

  void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) override {
    Slot& state = slots_[slot];
    if (!state.started || packet_number + 1 <= state.next_number) ++misused_;
    state.next_number = packet_number + 1;
    const std::uint64_t key = mix64(state.key ^ packet_number << 1 ^ static_cast<std::uint64_t>(state.client));
    const std::uint64_t sum = digest(key, header, text);
    hide(key, text);
    for (std::size_t i = 0; i < kTagBytes; ++i) tag[i] = static_cast<std::uint8_t>(mix64(sum + i / 8) >> (i % 8 * 8));
  }

  bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) override {
    const Slot& state = slots_[slot];
    if (!state.started) return false;
    const std::uint64_t key = mix64(state.key ^ packet_number << 1 ^ static_cast<std::uint64_t>(!state.client));
    hide(key, text);
    const std::uint64_t sum = digest(key, header, text);
    for (std::size_t i = 0; i < kTagBytes; ++i) {
      if (tag[i] != static_cast<std::uint8_t>(mix64(sum + i / 8) >> (i % 8 * 8))) return false;
    }
    return true;
  }

  /// Packet numbers that did not grow, seals outside of a session, or sessions begun without a key.
  [[nodiscard]] std::uint64_t misused() const { return misused_; }

 private:
  struct Slot {
    message::KeyId name = 0;
    std::uint64_t secret = 0;
    std::uint64_t key = 0;
    bool client = false;
    bool started = false;
    std::uint64_t next_number = 0;
  };

  static void hide(std::uint64_t key, std::span<std::uint8_t> text) {
    for (std::size_t i = 0; i < text.size(); i += 8) {
      const std::uint64_t word = mix64(key + i);
      for (std::size_t j = i; j < text.size() && j < i + 8; ++j) {
        text[j] ^= static_cast<std::uint8_t>(word >> ((j - i) * 8));
      }
    }
  }
  static std::uint64_t digest(std::uint64_t key, std::span<const std::uint8_t> header,
                              std::span<const std::uint8_t> text) {
    std::uint64_t sum = mix64(key ^ header.size() << 32 ^ text.size());
    for (const auto bytes : {header, text}) {
      for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
        sum = mix64(sum ^ word);
      }
    }
    return sum;
  }

  std::vector<Slot> slots_;
  std::uint64_t drawn_ = 0;
  std::uint64_t misused_ = 0;
};

}  // namespace warpline::sim
