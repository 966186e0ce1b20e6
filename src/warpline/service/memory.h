// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "warpline/gpu/memory/host_registration.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/memory/gpu_memory.h"
#include "warpline/message/receive_memory.h"
#include "warpline/service/app.h"
#include "warpline/transport/device_stage.h"
#include "warpline/transport/ethdev/message_port.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::service {

/// What the messages of a run need of memory.
struct MessageMemorySetup {
  memory::MemoryKind kind = memory::MemoryKind::device;  ///< or pinned
  std::uint16_t gpu = 0;                                 ///< CUDA ordinal
  std::uint32_t longest = 0;                             ///< bytes of the longest message cut from the pattern
  std::vector<std::uint64_t> rooms{};                    ///< bytes that each worker receives into
  bool server = false;                                   ///< rooms are for what peers send
  bool hashes = false;                                   ///< workers look at bytes

  /// Room for the responses of a client's worker.
  [[nodiscard]] static std::uint64_t client_room(const MessageClient::Plan& plan);
  static constexpr std::uint64_t kServerRoom = 64ULL << 20;
  /// Returns the bytes to reserve in the port's own host memory: all if the memory is pinned, else 0.
  [[nodiscard]] std::uint64_t port_bytes() const { return kind == memory::MemoryKind::pinned ? bytes() : 0; }
  [[nodiscard]] std::uint64_t bytes() const;
};

/// Memory that is pinned for a GPU, or a GPU's own, for the messages of a run; and for each worker what gets bytes
/// there and looks at them. By the control thread before the workers run. Goes after their endpoints, and before the
/// port.
class MessageMemory {
 public:
  /// `pattern` is copied there. Refused where there is no such GPU.
  [[nodiscard]] static Result<std::unique_ptr<MessageMemory>> make(MessageMemorySetup setup,
                                                                   const MessagePattern& pattern,
                                                                   transport::MessagePort* port);

  /// What worker `number` sends and receives through, in place of `transport`; a socket's buffers, if it is one.
  [[nodiscard]] Result<transport::Transport*> add_worker(std::uint16_t number, transport::Transport& transport,
                                                         transport::UdpSocket* socket);
  /// Begins to copy and hash for all workers, once each of them was added.
  [[nodiscard]] Result<void> start();
  /// Sets what worker `number` needs in its endpoint's configuration. Call it after add_worker().
  void apply(std::uint16_t number, message::EndpointConfig& endpoint);
  [[nodiscard]] MessageStore store(std::uint16_t number);

  ~MessageMemory() { stop(); }
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;
  /// Ends all lanes. If several memories are on one GPU, stop all of them before the first is destroyed.
  void stop();

  /// Why a lane works no more, if one does not.
  [[nodiscard]] std::optional<Error> failure() const;
  /// For the report.
  [[nodiscard]] nlohmann::ordered_json facts() const;

 private:
  struct Worker {
    std::span<std::uint8_t> room;
    std::optional<gpu::HostRegistration> buffers;  ///< a socket's
    std::optional<message::ReceiveMemory> blocks;  ///< a server's room
    std::vector<std::uint8_t*> freed;              ///< freed blocks, given back when the stage is quiet
    std::unique_ptr<PieceLane> copies;
    std::unique_ptr<transport::DeviceStage> stage;
    std::optional<gpu::PinnedBuffer> words;
    std::unique_ptr<PieceLane> hashes;
    std::optional<MessageHasher> hasher;
  };

  explicit MessageMemory(MessageMemorySetup setup) : setup_(std::move(setup)) {}
  [[nodiscard]] bool device() const { return setup_.kind == memory::MemoryKind::device; }
  Result<void> take(transport::MessagePort* port);
  Result<void> fill(const MessagePattern& pattern);
  static message::MutableBuffer lend(void* worker, message::SessionId, std::uint16_t, std::uint32_t length);
  static void take_back(void* worker, message::MutableBuffer buffer);

  MessageMemorySetup setup_;
  std::string gpu_name_;
  memory::OwnedMemory gpu_;                      ///< device
  std::optional<gpu::PinnedBuffer> pinned_;      ///< pinned, without a port
  std::optional<gpu::HostRegistration> opened_;  ///< pinned, of the port's
  std::span<std::uint8_t> all_;
  MessagePattern pattern_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace warpline::service
