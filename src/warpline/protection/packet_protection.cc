// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/packet_protection.h"

#include <openssl/crypto.h>

#include <limits>
#include <utility>
#include <vector>

#include "warpline/protection/key_file.h"
#include "warpline/protection/session_keys.h"

namespace warpline::protection {
namespace {

/// What OpenSSL calls the algorithms, looked up once.
struct Algorithms {
  EvpCipher gcm{EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr)};
  EvpCipher block{EVP_CIPHER_fetch(nullptr, "AES-128-ECB", nullptr)};
  EvpKdf hkdf{EVP_KDF_fetch(nullptr, "HKDF", nullptr)};
  EvpMac hmac{EVP_MAC_fetch(nullptr, "HMAC", nullptr)};

  [[nodiscard]] bool complete() const {
    return gcm != nullptr && block != nullptr && hkdf != nullptr && hmac != nullptr;
  }
};

/// One direction of a session, with the key of the packets seen last.
struct DirectionState {
  DirectionState(const EVP_CIPHER* gcm, AesGcm::Direction direction) : cipher(gcm, direction) {}

  DirectionSecrets secrets;
  std::uint64_t epoch = 0;
  AesGcm cipher;
};

class AesGcmProtection final : public message::PacketProtection {
 public:
  AesGcmProtection(const AesKey& key, std::uint32_t max_sessions, Algorithms algorithms)
      : algorithms_(std::move(algorithms)),
        schedule_(algorithms_.block.get()),
        prover_(algorithms_.hkdf.get(), algorithms_.hmac.get(), key),
        key_(key) {
    slots_.reserve(max_sessions);
    for (std::uint32_t i = 0; i < max_sessions; ++i) slots_.emplace_back(algorithms_.gcm.get());
  }

  ~AesGcmProtection() override {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) stop(i);
    OPENSSL_cleanse(key_.data(), key_.size());
  }

  bool prove(std::span<const std::uint8_t> handshake, message::HandshakeProof& proof) override {
    return prover_.prove(handshake, proof);
  }

  void start(std::uint32_t slot, const message::HandshakeTranscript& handshake, bool client) override {
    stop(slot);
    SessionSecrets secrets;
    if (!derive_session(algorithms_.hkdf.get(), key_, handshake, secrets)) return;
    Slot& session = slots_[slot];
    session.out.secrets = client ? secrets.from_client : secrets.from_server;
    session.in.secrets = client ? secrets.from_server : secrets.from_client;
    OPENSSL_cleanse(&secrets, sizeof secrets);
    if (!use_epoch(session.out, 0) || !use_epoch(session.in, 0)) stop(slot);
  }

  void stop(std::uint32_t slot) override {
    for (DirectionState* direction : {&slots_[slot].out, &slots_[slot].in}) {
      direction->cipher.clear();
      OPENSSL_cleanse(&direction->secrets, sizeof direction->secrets);
    }
  }

  void seal(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<std::uint8_t, kTagBytes> tag) override {
    DirectionState& out = slots_[slot].out;
    // Without a key nothing legible leaves: the peer drops it, and the session ends as with a peer that is silent.
    if (!follow(out, packet_number)) out.cipher.clear();
    static_cast<void>(out.cipher.seal(packet_nonce(out.secrets.mask, packet_number), header, text, tag));
  }

  bool open(std::uint32_t slot, std::uint64_t packet_number, std::span<const std::uint8_t> header,
            std::span<std::uint8_t> text, std::span<const std::uint8_t, kTagBytes> tag) override {
    DirectionState& in = slots_[slot].in;
    return follow(in, packet_number) && in.cipher.open(packet_nonce(in.secrets.mask, packet_number), header, text, tag);
  }

 private:
  struct Slot {
    explicit Slot(const EVP_CIPHER* gcm) : out(gcm, AesGcm::Direction::seal), in(gcm, AesGcm::Direction::open) {}
    DirectionState out;
    DirectionState in;
  };

  /// The key that this packet is under. Where one key ends, packets out of order may change it to and fro.
  [[nodiscard]] bool follow(DirectionState& direction, std::uint64_t packet_number) {
    const std::uint64_t epoch = packet_number >> kPacketsAKeyLog2;
    if (!direction.cipher.has_key()) return false;
    return epoch == direction.epoch || use_epoch(direction, epoch);
  }

  [[nodiscard]] bool use_epoch(DirectionState& direction, std::uint64_t epoch) {
    AesKey key;
    const bool set = schedule_.derive(direction.secrets.secret, epoch, key) && direction.cipher.set_key(key);
    OPENSSL_cleanse(key.data(), key.size());
    direction.epoch = epoch;
    return set;
  }

  Algorithms algorithms_;
  KeySchedule schedule_;
  HandshakeProver prover_;
  AesKey key_;
  std::vector<Slot> slots_;
};

}  // namespace

Result<std::unique_ptr<message::PacketProtection>> make_protection(const AesKey& key, std::uint32_t max_sessions) {
  Algorithms algorithms;
  if (!algorithms.complete()) {
    return environment_error("cannot encrypt packets", "this OpenSSL offers no AES-128-GCM, HKDF or HMAC",
                             "look at `openssl list -cipher-algorithms` and the machine's openssl.cnf");
  }
  return std::unique_ptr<message::PacketProtection>(
      std::make_unique<AesGcmProtection>(key, max_sessions, std::move(algorithms)));
}

Result<std::unique_ptr<message::PacketProtection>> load_protection(const std::string& path,
                                                                   std::uint32_t max_sessions) {
  WARPLINE_TRY(AesKey key, read_key_file(path));
  auto protection = make_protection(key, max_sessions);
  OPENSSL_cleanse(key.data(), key.size());
  return protection;
}

}  // namespace warpline::protection
