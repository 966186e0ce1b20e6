// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "rpc/gpu_messages.h"
#include "warpline/base/result.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/rpc/loop_part.h"
#include "warpline/rpc/message_host.h"

namespace warpline::python {

/// A MessageHost whose loop has a thread of its own, which never holds the GIL.
class HostThread {
 public:
  /// Opens a host. `key`: the file of keys that it encrypts with, by protection::read_key_file(); empty: it does not.
  /// `gpu`: the one in whose memory messages may lie. What joins the host has joined it before
  /// start(). Errors as of MessageHost::open(), of that file, and of GpuMessages. Usage error: both a key and a GPU.
  [[nodiscard]] static Result<std::unique_ptr<HostThread>> open(rpc::MessageHost::Settings settings,
                                                                const std::string& key,
                                                                const std::optional<GpuMessages::Settings>& gpu);
  ~HostThread() { join(); }
  HostThread(const HostThread&) = delete;
  HostThread& operator=(const HostThread&) = delete;

  [[nodiscard]] rpc::MessageHost& host() { return *host_; }
  [[nodiscard]] std::uint16_t port() const { return gpu_ ? gpu_->port() : host_->port(); }  ///< that it is bound to
  /// Which arrays on a GPU may be messages; null: none.
  [[nodiscard]] const ArrayGpu* arrays() const { return gpu_ ? &gpu_->arrays() : nullptr; }
  [[nodiscard]] GpuMessages* gpu() { return gpu_.get(); }
  /// Begins the loop; `part` leaves it at the end. Environment error: the system gives no thread.
  Result<void> start(rpc::LoopPart& part);
  void stop() { host_->stop(); }       ///< ends the loop; any thread
  void wait() { ended_.wait(false); }  ///< until the loop has ended; any thread
  void join();                         ///< ends the loop, and waits until it has ended
  /// Reads the file of keys again: sessions that begin from now on use its first key, and peers any of them. A file
  /// that cannot be used changes nothing, and is an error. Any thread. Usage error: there is no such file.
  Result<void> read_key_again();
  /// Ends the host, which tells of the end of what is still there, and waits for copies of a GPU; after join().
  void end() {
    host_.reset();
    gpu_.reset();
  }

 private:
  HostThread() = default;

  std::string key_;
  std::shared_ptr<protection::Keys> keys_;  ///< null: it does not encrypt
  std::unique_ptr<message::PacketProtection> protection_;
  std::unique_ptr<GpuMessages> gpu_;  ///< null: messages are in host memory
  std::optional<rpc::MessageHost> host_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::python
