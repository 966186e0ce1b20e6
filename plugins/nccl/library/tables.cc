// SPDX-License-Identifier: Apache-2.0
// The structs that NCCL looks up by name, one a version, each a thin layer over the same plugin. NCCL takes the newest
// that it knows.
#include <exception>
#include <memory>
#include <new>
#include <span>

#include "nccl/abi.h"
#include "nccl/log.h"
#include "nccl/plugin.h"
#include "nccl/receive_connection.h"

#define WARPLINE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace warpline::nccl {
namespace {

/// No exception reaches NCCL.
template <typename Call>
Status guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return report(Status::system_error,
                  environment_error("the plugin", error.what(), "see what the process is short of"));
  }
}

/// What a communicator is to the plugin since version 11.
struct CommunicatorContext {
  std::uint64_t communicator = 0;
};

Status init(Logger logger) {
  return guarded([&] { return Plugin::instance().init(logger); });
}
Status init_profiled(Logger logger, ProfilerCallback) { return init(logger); }
Status init_context(void** context, std::uint64_t communicator, CommunicatorConfig*, Logger logger, ProfilerCallback) {
  return guarded([&] {
    *context = nullptr;
    const Status status = Plugin::instance().init(logger);
    if (status == Status::success) *context = new CommunicatorContext{communicator};
    return status;
  });
}
Status finalize(void* context) {
  delete static_cast<CommunicatorContext*>(context);
  return Status::success;
}
/// How many peers and flows there will be, which changes nothing here.
Status set_attributes(void*, void*) { return Status::success; }

Status devices(int* count) {
  *count = Plugin::instance().devices();
  return Status::success;
}

/// Fills in what is in the properties of this version.
template <typename Properties>
Status properties(int device, Properties* to) {
  return guarded([&] {
    DeviceFacts facts;
    const Status status = Plugin::instance().facts(device, facts);
    if (status != Status::success) return status;
    *to = {};
    to->name = facts.name;
    to->pci_path = facts.pci_path;
    to->guid = facts.guid;
    to->pointer_support = kHostPointers;
    to->speed = facts.speed;
    to->latency = 0;  // as NCCL's sockets say, so that it tunes for both alike
    to->max_comms = 65536;
    to->max_receives = facts.max_group;
    if constexpr (requires { to->registration_is_global; }) to->registration_is_global = 0;
    if constexpr (requires { to->fused; }) {
      to->fused.count = static_cast<int>(facts.members.size());
      for (std::size_t i = 0; i < facts.members.size(); ++i) to->fused.devices[i] = facts.members[i];
      to->max_p2p_bytes = kMaxBytes;
      to->max_collective_bytes = kMaxBytes;
    }
    if constexpr (requires { to->max_multi_request; }) to->max_multi_request = 1;
    if constexpr (requires { to->rail; }) {
      to->rail = -1;
      to->plane = -1;
    }
    return status;
  });
}
template <>
Status properties(int device, PropertiesV11* to) {
  to->max_multi_request = 1;
  return properties(device, &to->as_before);
}

template <int kDevices>
Status fuse(int* device, FusedDevices<kDevices>* members) {
  return guarded([&] {
    const int count = members->count < 0 || members->count > kDevices ? 0 : members->count;
    return Plugin::instance().fuse({members->devices, static_cast<std::size_t>(count)}, device);
  });
}

Status listen(int device, void* handle, void** comm) {
  return guarded([&] { return Plugin::instance().listen(device, handle, comm); });
}
Status listen_context(void*, int device, void* handle, void** comm) { return listen(device, handle, comm); }

Status connect(int device, void* handle, void** comm) {
  return guarded([&] { return Plugin::instance().connect(device, handle, comm); });
}
Status connect_device(int device, void* handle, void** comm, void**) { return connect(device, handle, comm); }
Status connect_config(int device, CommunicatorConfig*, void* handle, void** comm, void**) {
  return connect(device, handle, comm);
}
Status connect_context(void*, int device, void* handle, void** comm, void**) { return connect(device, handle, comm); }

Status accept(void* listener, void** comm) {
  return guarded([&] { return Plugin::instance().accept(listener, comm); });
}
Status accept_device(void* listener, void** comm, void**) { return accept(listener, comm); }

/// Host memory is read and written where it is; what is remembered is which is not to be touched once it is given back.
struct RegisteredMemory {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

template <typename Size>
Status register_memory(void*, void* data, Size size, int type, void** memory) {
  *memory = nullptr;
  if (type == kHostPointers) {
    return guarded([&] {
      *memory = new RegisteredMemory{data, static_cast<std::size_t>(size)};
      return Status::success;
    });
  }
  return report(Status::internal_error,
                usage_error("regMr()", "the plugin takes host memory alone, and says so", "report it to NCCL"));
}
Status register_dmabuf(void*, void*, std::size_t, int, std::uint64_t, int, void** memory) {
  *memory = nullptr;
  return report(Status::internal_error,
                usage_error("regMrDmaBuf()", "the plugin takes host memory alone, and says so", "report it to NCCL"));
}
Status deregister_memory(void* comm, void* memory) {
  return guarded([&] {
    const std::unique_ptr<RegisteredMemory> ended(static_cast<RegisteredMemory*>(memory));
    if (ended) static_cast<Connection*>(comm)->let_go(ended->data, ended->bytes);
    return Status::success;
  });
}

template <typename Size>
Status send(void* comm, void* data, Size size, int tag, void*, void** request) {
  return guarded([&] {
    Request* made = nullptr;
    auto& connection = static_cast<SendConnection&>(*static_cast<Connection*>(comm));
    const Status status = connection.send(data, static_cast<std::size_t>(size), tag, &made);
    *request = made;
    return status;
  });
}
Status send_profiled(void* comm, void* data, std::size_t size, int tag, void* memory, void*, void** request) {
  return send(comm, data, size, tag, memory, request);
}

template <typename Size>
Status receive(void* comm, int count, void** data, Size* sizes, int* tags, void**, void** request) {
  return guarded([&] {
    Request* made = nullptr;
    auto& connection = static_cast<ReceiveConnection&>(*static_cast<Connection*>(comm));
    const Status status = connection.receive(count, data, sizes, tags, &made);
    *request = made;
    return status;
  });
}
Status receive_profiled(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory, void**,
                        void** request) {
  return receive(comm, count, data, sizes, tags, memory, request);
}

/// Does nothing: what lies in host memory is visible.
Status flush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return Status::success;
}

Status test(void* request, int* done, int* sizes) {
  return guarded([&] {
    auto& asked = *static_cast<Request*>(request);
    return asked.connection->test(asked, done, sizes);
  });
}

Status close_connection(void* comm) {
  return guarded([&] { return Plugin::instance().close_connection(comm); });
}
Status close_listener(void* comm) {
  return guarded([&] { return Plugin::instance().close_listener(comm); });
}

constexpr char kName[] = "Warpline";
template <typename Size>
constexpr MemoryCalls<Size> kMemory{register_memory<Size>, register_dmabuf, deregister_memory};
template <typename Size>
constexpr TransferCalls<Size> kTransfers{send<Size>, receive<Size>};
constexpr TransferCallsV10 kProfiledTransfers{send_profiled, receive_profiled};
constexpr EndCalls kEnd{flush, test, close_connection, close_connection, close_listener};
constexpr DeviceCalls kNoDevice{nullptr, nullptr};

}  // namespace
}  // namespace warpline::nccl

// NOLINTBEGIN(readability-identifier-naming): NCCL's names.
WARPLINE_EXPORTED const warpline::nccl::NetV6 ncclNetPlugin_v6;
WARPLINE_EXPORTED const warpline::nccl::NetV7 ncclNetPlugin_v7;
WARPLINE_EXPORTED const warpline::nccl::NetV8 ncclNetPlugin_v8;
WARPLINE_EXPORTED const warpline::nccl::NetV9 ncclNetPlugin_v9;
WARPLINE_EXPORTED const warpline::nccl::NetV10 ncclNetPlugin_v10;
WARPLINE_EXPORTED const warpline::nccl::NetV11 ncclNetPlugin_v11;
WARPLINE_EXPORTED const warpline::nccl::NetV12 ncclNetPlugin_v12;

namespace wn = warpline::nccl;

const wn::NetV6 ncclNetPlugin_v6{wn::kName,  wn::init,         {wn::devices, wn::properties}, wn::listen, wn::connect,
                                 wn::accept, wn::kMemory<int>, wn::kTransfers<int>,           wn::kEnd};
const wn::NetV7 ncclNetPlugin_v7{
    wn::kName,         wn::init,         {wn::devices, wn::properties}, wn::listen, wn::connect_device,
    wn::accept_device, wn::kMemory<int>, wn::kTransfers<int>,           wn::kEnd,   wn::kNoDevice};
const wn::NetV8 ncclNetPlugin_v8{
    wn::kName,          wn::init,          {wn::devices, wn::properties}, wn::listen,
    wn::connect_device, wn::accept_device, wn::kMemory<std::size_t>,      wn::kTransfers<int>,
    wn::kEnd,           wn::kNoDevice};
const wn::NetV9 ncclNetPlugin_v9{wn::kName,
                                 wn::init,
                                 {wn::devices, wn::properties},
                                 wn::listen,
                                 wn::connect_device,
                                 wn::accept_device,
                                 wn::kMemory<std::size_t>,
                                 wn::kTransfers<std::size_t>,
                                 wn::kEnd,
                                 wn::kNoDevice,
                                 wn::fuse};
const wn::NetV10 ncclNetPlugin_v10{
    wn::kName,         wn::init_profiled,        {wn::devices, wn::properties}, wn::listen, wn::connect_config,
    wn::accept_device, wn::kMemory<std::size_t>, wn::kProfiledTransfers,        wn::kEnd,   wn::kNoDevice,
    wn::fuse};
const wn::NetV11 ncclNetPlugin_v11{wn::kName,
                                   wn::init_context,
                                   {wn::devices, wn::properties},
                                   wn::listen_context,
                                   wn::connect_context,
                                   wn::accept_device,
                                   wn::kMemory<std::size_t>,
                                   wn::kProfiledTransfers,
                                   wn::kEnd,
                                   wn::kNoDevice,
                                   wn::fuse,
                                   wn::finalize,
                                   wn::set_attributes};
const wn::NetV12 ncclNetPlugin_v12{wn::kName,
                                   wn::init_context,
                                   {wn::devices, wn::properties},
                                   wn::listen_context,
                                   wn::connect_context,
                                   wn::accept_device,
                                   wn::kMemory<std::size_t>,
                                   wn::kProfiledTransfers,
                                   wn::kEnd,
                                   wn::kNoDevice,
                                   wn::fuse,
                                   wn::finalize,
                                   wn::set_attributes};
// NOLINTEND(readability-identifier-naming)
