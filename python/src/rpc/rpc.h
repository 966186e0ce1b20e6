// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays/held_array.h"
#include "rpc/gpu_messages.h"
#include "warpline/message/types.h"
#include "warpline/rpc/message_host.h"

namespace warpline::python {

/// What clients and servers of warpline.rpc are opened with.
struct RpcSettings {
  std::uint32_t under_way = 1024;              ///< calls, or requests, at once
  std::uint32_t max_message_bytes = 16 << 20;  ///< the longest message that is taken
  std::uint64_t memory = 64U << 20;            ///< bytes for what arrives
  double peer_timeout = 15;                    ///< seconds of silence after which the peer is lost
  double connect_timeout = 1;                  ///< seconds after which a server that does not answer is lost
  double poll_for = 0;                         ///< seconds that the host's thread looks for work before it sleeps
  std::string key;                             ///< file of the keys that it encrypts with; empty: it does not

  std::optional<int> gpu;                  ///< CUDA ordinal of the one in whose memory messages may lie
  std::vector<std::uint16_t> gpu_methods;  ///< of a server: whose requests are received there

  std::uint32_t datagram_bytes = 1472;  ///< the most UDP payload of a packet, where the path carries it

  [[nodiscard]] rpc::MessageHost::Settings of_host() const;
  [[nodiscard]] std::optional<GpuMessages::Settings> of_gpu() const;
};

/// Returns a duration of seconds. ValueError: it is none.
[[nodiscard]] Nanos patience_of(double seconds);
/// Returns a length as messages have it. ValueError: it is too long for one, which `what` names.
[[nodiscard]] std::uint32_t length_of(std::size_t bytes, const char* what);
/// Returns an array as a message.
[[nodiscard]] message::ConstBuffer message_of(const HeldArray& array, const char* what);

/// While an object polls, Python's code may run, in futures and in what holds arrays. A close() that it calls takes
/// effect when the poll ends.
class Polls {
 public:
  /// False if it polls: close() is called again then.
  [[nodiscard]] bool may_close() {
    closes_ = polls_;
    return !polls_;
  }
  [[nodiscard]] bool closes() const { return closes_; }
  [[nodiscard]] bool polls() const { return polls_; }
  /// Calls `poll`, and `close` behind it if that was called meanwhile.
  template <typename Poll, typename Close>
  void run(Poll&& poll, Close&& close) {
    struct End {
      ~End() {
        of.polls_ = false;
        if (std::exchange(of.closes_, false)) close();
      }
      Polls& of;
      Close& close;
    } const end{*this, close};
    polls_ = true;
    poll();
  }

 private:
  bool polls_ = false;
  bool closes_ = false;
};

void add_rpc_client(nanobind::module_& module);  ///< rpc_client.cc
void add_rpc_server(nanobind::module_& module);  ///< rpc_server.cc

}  // namespace warpline::python
