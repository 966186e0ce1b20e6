// SPDX-License-Identifier: Apache-2.0
// What clients and servers of warpline.rpc have in common.
#include "rpc/rpc.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>

#include "rooms.h"

namespace nb = nanobind;

namespace warpline::python {
namespace {

constexpr double kLongest = 1e9;  ///< seconds, thirty years

Nanos duration_of(double seconds, const char* what) {
  if (!(seconds > 0) || seconds > kLongest)
    throw nb::value_error((std::string(what) + " is more than 0 seconds and less than 1e9").c_str());
  return Nanos{static_cast<std::int64_t>(seconds * 1e9)};
}

}  // namespace

rpc::MessageHost::Settings RpcSettings::of_host() const {
  rpc::MessageHost::Settings made;
  made.endpoint.max_message_bytes = max_message_bytes;
  made.endpoint.receive_bytes = memory;
  made.endpoint.datagram_bytes = datagram_bytes;
  made.endpoint.peer_timeout = duration_of(peer_timeout, "peer_timeout");
  made.endpoint.connect_timeout = duration_of(connect_timeout, "connect_timeout");
  if (!(poll_for >= 0) || poll_for > 1) throw nb::value_error("poll_for is 0 to 1 seconds");
  made.poll_for = Nanos{static_cast<std::int64_t>(poll_for * 1e9)};
  return made;
}

std::optional<GpuMessages::Settings> RpcSettings::of_gpu() const {
  if (!gpu) return std::nullopt;
  return GpuMessages::Settings{*gpu, gpu_methods};
}

Nanos patience_of(double seconds) {
  if (std::isnan(seconds)) throw nb::value_error("timeout is a number of seconds, or None");
  if (seconds >= kLongest) return message::kNever;
  return seconds > 0 ? Nanos{static_cast<std::int64_t>(seconds * 1e9)} : Nanos{0};
}

std::uint32_t length_of(std::size_t bytes, const char* what) {
  if (bytes > message::kMaxMessageBytes)
    throw nb::value_error((std::string(what) + ": longer than a message may be, 2 GiB").c_str());
  return static_cast<std::uint32_t>(bytes);
}

message::ConstBuffer message_of(const HeldArray& array, const char* what) {
  return {array.bytes().data(), length_of(array.bytes().size(), what), array.on_gpu() && !array.bytes().empty()};
}

void add_rpc(nb::module_& module) {
  nb::class_<RpcSettings>(module, "RpcSettings")
      .def(nb::init<>())
      .def_rw("under_way", &RpcSettings::under_way)
      .def_rw("max_message_bytes", &RpcSettings::max_message_bytes)
      .def_rw("memory", &RpcSettings::memory)
      .def_rw("peer_timeout", &RpcSettings::peer_timeout)
      .def_rw("connect_timeout", &RpcSettings::connect_timeout)
      .def_rw("poll_for", &RpcSettings::poll_for)
      .def_rw("datagram_bytes", &RpcSettings::datagram_bytes)
      .def_rw("key", &RpcSettings::key)
      .def_rw("gpu", &RpcSettings::gpu, nb::arg().none())
      .def_rw("gpu_methods", &RpcSettings::gpu_methods);
  add_rpc_client(module);
  add_rpc_server(module);
}

}  // namespace warpline::python
