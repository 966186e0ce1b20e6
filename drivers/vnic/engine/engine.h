// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "vnic/common/device_clock.h"
#include "vnic/engine/engine_static.h"
#include "vnic/rings/queue.h"
#include "vnic/sources/source.h"
#include "vnic/sources/supplied_addresses.h"
#include "vnic/wire/packet_buffer.h"
#include "warpline/vnic/copy_ops.h"

namespace warpline::vnic {

struct Hardware;

/// Moves frames between descriptor rings and the wire, touching descriptors and payload only. With engine=inline the
/// burst calls run it, with engine=thread a thread of its own does.
///
/// Counts in a queue's device_counts: tx_packets and tx_bytes of frames that left, and what it loses itself. Frames
/// received are counted by the driver.
class Engine {
 public:
  explicit Engine(Hardware& hardware);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// At probe, when the devargs are known: memory for all queues, and the source of made frames. 0 or a negative errno,
  /// after one log line.
  [[nodiscard]] int open();

  /// Sends what is posted; completions are written back in batches. Returns frames sent.
  /// Owner: the queue's, or the engine's thread.
  std::uint32_t serve_tx(TxQueue& queue);
  /// Receives up to `most` frames into posted buffers. Returns frames received.
  std::uint32_t serve_rx(RxQueue& queue, std::uint32_t most);

  /// Before a queue is started, while its rings are empty: the device begins anew, and with engine=thread serves it as
  /// soon as it is marked as started. 0 or -ENOMEM: the copy engine has no lane for it.
  [[nodiscard]] int reset(RxQueue& queue);
  [[nodiscard]] int reset(TxQueue& queue);
  /// Before a stopped queue is emptied: sends what is posted, waits for copies that are under way, and has nothing to
  /// do with the queue any more when it returns.
  void finish(RxQueue& queue);
  void finish(TxQueue& queue);

  /// With either engine, when the queues that start with the port have. Made frames are for the address `own`, without
  /// one for all. 0 or a negative errno, after one log line.
  int start(const rte_ether_addr* own = nullptr);
  /// Before the queues stop: sends what is posted and what faults hold back; ends the thread.
  void stop();

  /// wire=static, and nobody copies: the bytes of a buffer are the program's alone.
  [[nodiscard]] bool leaves_payload() const { return fixed_; }
  /// Who copies payload, null for the CPU. While the port is stopped. 0 or -ENOMEM.
  [[nodiscard]] int set_copy_engine(const rte_net_vnic_copy_engine* engine);
  /// With a copy engine, when the numbers of queues have changed: what its copies need. 0 or -ENOMEM.
  [[nodiscard]] int prepare_copies();
  /// All memory for payload on the device's side of copies.
  void list_payload(const std::function<void(std::span<std::uint8_t>)>& found) const;

 private:
  struct TxState;
  struct RxState;
  struct TxCopies;
  struct RxCopies;
  struct Chain;

  [[nodiscard]] Chain follow(const TxQueue& queue, TxState& state, std::uint32_t pending) const;
  static void complete(TxQueue& queue, std::uint32_t descriptors);
  /// False: malformed, or of memory that is not the device's; counted.
  static bool usable(TxQueue& queue, TxState& state, const Chain& chain);
  void gather(const TxQueue& queue, const Chain& chain, std::uint8_t* out) const;
  bool send_in_place(const TxDescriptor& piece, std::uint64_t now_nanos, bool& left);
  bool send_chain(TxQueue& queue, TxState& state, const Chain& chain, std::uint64_t now_nanos);
  bool send_gathered(TxQueue& queue, std::uint8_t* frame, std::uint32_t length, std::uint64_t word,
                     std::uint64_t now_nanos);
  std::uint32_t send_posted(TxQueue& queue, TxState& state);

  std::uint32_t receive(RxQueue& queue, RxState& state, std::uint32_t most);
  std::uint32_t receive_fixed(RxQueue& queue, std::uint32_t most);
  std::uint32_t fill_fixed(RxQueue& queue, std::uint32_t most);
  enum class Fill : std::uint8_t { done, wait, lost };
  Fill fill(RxQueue& queue, RxState& state, PacketBuffer::Front front, std::uint32_t& vacant);
  struct Looks;
  /// The next frame that has arrived by now, or none.
  [[nodiscard]] PacketBuffer::Front arrived(PacketBuffer& buffer, RxState& state, Looks& looks, std::uint32_t wanted);
  /// Makes up to `most` frames, those that have arrived by now; called when a packet buffer is empty.
  void make_frames(std::uint32_t most);

  // With a copy engine (engine_copies*.cc).
  int fill_supply(RxCopies& copies);
  std::uint32_t receive_copies(RxQueue& queue, RxState& state, std::uint32_t most);
  std::uint32_t begin_received(RxQueue& queue, RxState& state, std::uint32_t most);
  std::uint32_t begin_supplied(RxQueue& queue, RxState& state, std::uint32_t most);
  std::uint32_t land(RxQueue& queue, RxCopies& copies);
  void lose(RxQueue& queue, RxCopies& copies);
  std::uint32_t send_copies(TxQueue& queue, TxState& state);
  std::uint32_t gather_posted(TxQueue& queue, TxState& state);
  std::uint32_t land(TxQueue& queue, TxCopies& copies);
  void lose(TxQueue& queue, TxState& state);
  /// With the inline engine: transmit queues that nobody sends on while their copies are under way.
  void look_after_senders(std::uint16_t rx_queue);

  [[nodiscard]] int create_thread(const char* name);
  int start_thread();
  void stop_thread();
  void run();
  [[nodiscard]] std::uint32_t pass();
  /// With a thread running: returns when it has looked at served_rx_ and served_tx_ again.
  void wait_for_pass() const;
  /// Sends all that is posted and lands what is under way.
  void drain(TxQueue& queue, TxState& state);

  Hardware& hardware_;
  bool fixed_;                  ///< wire=static, payload untouched
  bool copies_ = false;         ///< there is a copy engine
  SuppliedAddresses supplied_;  ///< with wire=static and a copy engine; set while the port is stopped
  rte_net_vnic_copy_engine copy_engine_{};
  std::unique_ptr<Source> source_;
  std::array<std::unique_ptr<TxState>, kMaxQueues> tx_;
  std::array<std::unique_ptr<RxState>, kMaxQueues> rx_;

  // What the thread serves.
  std::array<std::atomic<TxQueue*>, kMaxQueues> served_tx_{};
  std::array<std::atomic<RxQueue*>, kMaxQueues> served_rx_{};
  std::atomic<std::uint64_t> passes_{0};
  bool running_ = false;
  pthread_t thread_{};
  std::atomic<bool> stop_{false};
};

}  // namespace warpline::vnic
