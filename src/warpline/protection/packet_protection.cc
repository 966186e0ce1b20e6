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
  AesGcmProtection(std::shared_ptr<const Keys> keys, std::uint32_t max_sessions, Algorithms algorithms)
      : algorithms_(std::move(algorithms)),
        schedule_(algorithms_.block.get()),
        prover_(algorithms_.hmac.get()),
        keys_(std::move(keys)) {
    slots_.reserve(max_sessions);
    for (std::uint32_t i = 0; i < max_sessions; ++i) slots_.emplace_back(algorithms_.gcm.get());
  }

  ~AesGcmProtection() override {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) stop(i);
  }

  [[nodiscard]] std::uint32_t max_sessions() const override { return static_cast<std::uint32_t>(slots_.size()); }

  bool prove_hello(message::KeyId key, std::span<const std::uint8_t> hello, message::HandshakeProof& proof) override {
    const Key* const found = current().find(key);
    return found != nullptr && prover_.prove(*found, hello, proof);
  }

  bool offer(std::uint32_t slot) override { return begin(slot, current().keys().front()); }

  bool answer(std::uint32_t slot, message::KeyId key) override {
    const Key* const found = current().find(key);
    return found != nullptr && begin(slot, *found);
  }

  [[nodiscard]] message::KeyId key(std::uint32_t slot) const override { return slots_[slot].key; }

  [[nodiscard]] message::KeyShare share(std::uint32_t slot) const override { return slots_[slot].share; }

  bool prove(std::uint32_t slot, std::span<const std::uint8_t> handshake, message::HandshakeProof& proof) override {
    const Slot& session = slots_[slot];
    const Key* const found = session.opening == nullptr ? nullptr : session.opening->find(session.key);
    return found != nullptr && prover_.prove(*found, handshake, proof);
  }

  bool start(std::uint32_t slot, const message::KeyShare& peer, const message::HandshakeTranscript& handshake,
             bool client) override {
    Slot& session = slots_[slot];
    const std::shared_ptr<const KeySet> opening = std::move(session.opening);
    const Key* const found = opening == nullptr ? nullptr : opening->find(session.key);
    SharedSecret exchanged;
    if (found == nullptr || !session.exchange.agree(peer, exchanged)) return false;
    SessionSecrets secrets;
    const bool made = derive_session(algorithms_.hkdf.get(), found->secret, exchanged, handshake, secrets);
    OPENSSL_cleanse(exchanged.data(), exchanged.size());
    if (!made) return false;
    session.out.secrets = client ? secrets.from_client : secrets.from_server;
    session.in.secrets = client ? secrets.from_server : secrets.from_client;
    OPENSSL_cleanse(&secrets, sizeof secrets);
    if (use_epoch(session.out, 0) && use_epoch(session.in, 0)) return true;
    stop(slot);
    return false;
  }

  void stop(std::uint32_t slot) override {
    slots_[slot].opening.reset();
    slots_[slot].exchange.clear();
    slots_[slot].key = 0;
    slots_[slot].share = {};
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
    std::shared_ptr<const KeySet> opening;  ///< with the key, until start()
    KeyExchange exchange;                   ///< likewise
    message::KeyId key = 0;
    message::KeyShare share{};
    DirectionState out;
    DirectionState in;
  };

  /// Those in force. A lock is taken only after they were replaced.
  [[nodiscard]] const KeySet& current() {
    if (const std::uint64_t version = keys_->version(); version != version_) {
      version_ = version;
      set_ = keys_->get();
    }
    return *set_;
  }

  [[nodiscard]] bool begin(std::uint32_t slot, const Key& key) {
    stop(slot);
    Slot& session = slots_[slot];
    if (!session.exchange.draw(session.share)) return false;
    session.opening = set_;
    session.key = key.id;
    return true;
  }

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
  std::shared_ptr<const Keys> keys_;
  std::shared_ptr<const KeySet> set_;  ///< as of version_
  std::uint64_t version_ = 0;          ///< of keys_; it has none of this number
  std::vector<Slot> slots_;
};

}  // namespace

Result<std::unique_ptr<message::PacketProtection>> make_protection(std::shared_ptr<const Keys> keys,
                                                                   std::uint32_t max_sessions) {
  Algorithms algorithms;
  if (!algorithms.complete()) {
    return environment_error("cannot encrypt packets", "this OpenSSL offers no AES-128-GCM, HKDF or HMAC",
                             "look at `openssl list -cipher-algorithms` and the machine's openssl.cnf");
  }
  return std::unique_ptr<message::PacketProtection>(
      std::make_unique<AesGcmProtection>(std::move(keys), max_sessions, std::move(algorithms)));
}

Result<std::unique_ptr<message::PacketProtection>> make_protection(const AesKey& key, std::uint32_t max_sessions) {
  const GivenKey given{key, {}};
  WARPLINE_TRY(std::shared_ptr<const KeySet> keys, KeySet::make({&given, 1}));
  return make_protection(std::make_shared<const Keys>(std::move(keys)), max_sessions);
}

Result<std::unique_ptr<message::PacketProtection>> load_protection(const std::string& path,
                                                                   std::uint32_t max_sessions) {
  WARPLINE_TRY(std::shared_ptr<const KeySet> keys, read_key_file(path));
  return make_protection(std::make_shared<const Keys>(std::move(keys)), max_sessions);
}

}  // namespace warpline::protection
