// SPDX-License-Identifier: Apache-2.0
// Two ways from one process to another and back: the plugin, called as NCCL calls it, and TCP sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace warpline::bench_nccl {

/// Carries transfers of one length to the other process and back.
class Way {
 public:
  virtual ~Way() = default;
  /// Sends and receives one of each, `count` times, rank 0 first.
  virtual void ping_pong(std::vector<std::uint8_t>& bytes, std::size_t count, int rank) = 0;
  /// Sends `count` times, and returns when the other end has them all. `bytes` are read.
  virtual void send(const std::vector<std::uint8_t>& bytes, std::size_t count) = 0;
  /// The other end of send(). The last transfer lies in `bytes`.
  virtual void receive(std::vector<std::uint8_t>& bytes, std::size_t count) = 0;
};

/// `peer`: a socket to the other process, for what has to be told beforehand. `sockets`: TCP connections, each with a
/// thread at either end. What fails ends the process.
[[nodiscard]] std::unique_ptr<Way> make_plugin_way(const std::string& file, int peer);
[[nodiscard]] std::unique_ptr<Way> make_tcp_way(int peer, int rank, std::size_t sockets);

/// Tells the other process, and hears from it.
void tell(int peer, const void* bytes, std::size_t length);
void hear(int peer, void* bytes, std::size_t length);
/// Ends the process with a line that says what failed.
[[noreturn]] void fail(const std::string& what);

}  // namespace warpline::bench_nccl
