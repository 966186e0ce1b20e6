// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// NCCL's interface of network plugins, versions 6 to 12, declared here anew: the types and the order of members are the
// binary interface (NVIDIA/nccl, plugins/net/example/nccl, net_v6.h to net_v12.h); the names are ours.
namespace warpline::nccl {

/// What each function returns: ncclResult_t.
enum class Status : std::uint32_t {
  success = 0,
  cuda_error = 1,
  system_error = 2,      ///< the kernel, the network or memory
  internal_error = 3,    ///< NCCL called as it should not
  invalid_argument = 4,  ///< an argument that cannot be
  invalid_usage = 5,     ///< the user's mistake, such as sizes that do not match
  remote_error = 6,      ///< the peer is gone
};

/// How much a line of the log matters: ncclDebugLogLevel.
enum class LogLevel : std::uint32_t { none = 0, version = 1, warn = 2, info = 3, abort = 4, trace = 5 };

/// NCCL's log; `flags` are subsystems, `format` is printf's.
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line, const char* format, ...);
/// NCCL's profiler, which is not told anything.
using ProfilerCallback = Status (*)(void** event, int type, void* handle, std::int64_t plugin, void* data);

inline constexpr std::size_t kHandleBytes = 128;  ///< NCCL_NET_HANDLE_MAXSIZE
inline constexpr int kMaxRequests = 32;           ///< NCCL_NET_MAX_REQUESTS: receives of a connection at once
inline constexpr int kHostPointers = 1;           ///< NCCL_PTR_HOST
inline constexpr std::uint64_t kNetSubsystem = 16;

/// NICs that are used as one: ncclNetVDeviceProps_vN, with room for 4 of them, since version 12 for 8.
template <int kDevices>
struct FusedDevices {
  int count;
  int devices[kDevices];
};

/// What a communicator asks of the network, since version 10.
struct CommunicatorConfig {
  int traffic_class;
};

struct PropertiesV6 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
};

struct PropertiesV7 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

/// Also of version 10.
struct PropertiesV9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  FusedDevices<4> fused;
  std::size_t max_p2p_bytes;
  std::size_t max_collective_bytes;
};

struct PropertiesV11 {
  PropertiesV9 as_before;
  int max_multi_request;
};
static_assert(offsetof(PropertiesV11, max_multi_request) == sizeof(PropertiesV9));

struct PropertiesV12 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  FusedDevices<8> fused;
  std::size_t max_p2p_bytes;
  std::size_t max_collective_bytes;
  int max_multi_request;
  std::int16_t rail;
  std::int16_t plane;
};

/// What begins each version's struct from `devices` on until connect().
template <typename Properties>
struct Discovery {
  Status (*devices)(int* count);
  Status (*properties)(int device, Properties* properties);
};

/// Memory, from version 8 on with sizes that fit all.
template <typename Size>
struct MemoryCalls {
  Status (*register_memory)(void* comm, void* data, Size size, int type, void** memory);
  Status (*register_dmabuf)(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int descriptor,
                            void** memory);
  Status (*deregister_memory)(void* comm, void* memory);
};

/// Transfers until version 9, from which on sizes fit all.
template <typename Size>
struct TransferCalls {
  Status (*send)(void* comm, void* data, Size size, int tag, void* memory, void** request);
  Status (*receive)(void* comm, int count, void** data, Size* sizes, int* tags, void** memory, void** request);
};

/// Transfers since version 10, which has the profiler's handles.
struct TransferCallsV10 {
  Status (*send)(void* comm, void* data, std::size_t size, int tag, void* memory, void* profiled, void** request);
  Status (*receive)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory, void** profiled,
                    void** request);
};

/// The end of a transfer and of connections, the same in all versions.
struct EndCalls {
  Status (*flush)(void* comm, int count, void** data, int* sizes, void** memory, void** request);
  Status (*test)(void* request, int* done, int* sizes);
  Status (*close_send)(void* comm);
  Status (*close_receive)(void* comm);
  Status (*close_listen)(void* comm);
};

/// For networks that a GPU drives, since version 7.
struct DeviceCalls {
  Status (*device_memory)(void* comm, void* memory, void** device_memory);
  Status (*receive_consumed)(void* comm, int count, void* request);
};

struct NetV6 {
  const char* name;
  Status (*init)(Logger logger);
  Discovery<PropertiesV6> discovery;
  Status (*listen)(int device, void* handle, void** comm);
  Status (*connect)(int device, void* handle, void** comm);
  Status (*accept)(void* listener, void** comm);
  MemoryCalls<int> memory;
  TransferCalls<int> transfers;
  EndCalls end;
};

/// Versions 7 and 8: `device_comm` is for networks that a GPU drives.
template <typename Properties, typename MemorySize>
struct NetV7Or8 {
  const char* name;
  Status (*init)(Logger logger);
  Discovery<Properties> discovery;
  Status (*listen)(int device, void* handle, void** comm);
  Status (*connect)(int device, void* handle, void** comm, void** device_comm);
  Status (*accept)(void* listener, void** comm, void** device_comm);
  MemoryCalls<MemorySize> memory;
  TransferCalls<int> transfers;
  EndCalls end;
  DeviceCalls device;
};
using NetV7 = NetV7Or8<PropertiesV7, int>;
using NetV8 = NetV7Or8<PropertiesV8, std::size_t>;

struct NetV9 {
  const char* name;
  Status (*init)(Logger logger);
  Discovery<PropertiesV9> discovery;
  Status (*listen)(int device, void* handle, void** comm);
  Status (*connect)(int device, void* handle, void** comm, void** device_comm);
  Status (*accept)(void* listener, void** comm, void** device_comm);
  MemoryCalls<std::size_t> memory;
  TransferCalls<std::size_t> transfers;
  EndCalls end;
  DeviceCalls device;
  Status (*fuse)(int* device, FusedDevices<4>* members);
};

struct NetV10 {
  const char* name;
  Status (*init)(Logger logger, ProfilerCallback profiler);
  Discovery<PropertiesV9> discovery;
  Status (*listen)(int device, void* handle, void** comm);
  Status (*connect)(int device, CommunicatorConfig* config, void* handle, void** comm, void** device_comm);
  Status (*accept)(void* listener, void** comm, void** device_comm);
  MemoryCalls<std::size_t> memory;
  TransferCallsV10 transfers;
  EndCalls end;
  DeviceCalls device;
  Status (*fuse)(int* device, FusedDevices<4>* members);
};

/// Versions 11 and 12: a context a communicator.
template <typename Properties, int kFused>
struct NetV11Or12 {
  const char* name;
  Status (*init)(void** context, std::uint64_t communicator, CommunicatorConfig* config, Logger logger,
                 ProfilerCallback profiler);
  Discovery<Properties> discovery;
  Status (*listen)(void* context, int device, void* handle, void** comm);
  Status (*connect)(void* context, int device, void* handle, void** comm, void** device_comm);
  Status (*accept)(void* listener, void** comm, void** device_comm);
  MemoryCalls<std::size_t> memory;
  TransferCallsV10 transfers;
  EndCalls end;
  DeviceCalls device;
  Status (*fuse)(int* device, FusedDevices<kFused>* members);
  Status (*finalize)(void* context);
  Status (*set_attributes)(void* context, void* attributes);
};
using NetV11 = NetV11Or12<PropertiesV11, 4>;
using NetV12 = NetV11Or12<PropertiesV12, 8>;

static_assert(sizeof(PropertiesV6) == 48 && sizeof(PropertiesV7) == 56 && sizeof(PropertiesV8) == 64);
static_assert(sizeof(PropertiesV9) == 104 && sizeof(PropertiesV11) == 112 && sizeof(PropertiesV12) == 128);
static_assert(sizeof(NetV6) == 17 * 8 && sizeof(NetV7) == 19 * 8 && sizeof(NetV8) == 19 * 8);
static_assert(sizeof(NetV9) == 20 * 8 && sizeof(NetV10) == 20 * 8);
static_assert(sizeof(NetV11) == 22 * 8 && sizeof(NetV12) == 22 * 8);

}  // namespace warpline::nccl
