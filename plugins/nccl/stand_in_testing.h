// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/abi.h"

namespace warpline::nccl {

/// The plugin as NCCL sees it: loaded from its file, called by one version of its interface.
class NetStandIn {
 public:
  /// What a device says of itself, as far as all versions tell.
  struct Device {
    std::string name;
    int pointer_support = 0;
    int speed = 0;
    int max_receives = 0;
    int members = 0;                ///< 0: not told
    std::size_t max_p2p_bytes = 0;  ///< 0: not told
  };

  virtual ~NetStandIn() = default;
  virtual Status init() = 0;
  virtual Status finalize() = 0;
  virtual int devices() = 0;
  virtual Device device(int number) = 0;
  virtual Status fuse(const std::vector<int>& members, int* made) = 0;
  virtual Status listen(int device, void* handle, void** comm) = 0;
  virtual Status connect(int device, void* handle, void** comm) = 0;
  virtual Status accept(void* listener, void** comm) = 0;
  virtual Status register_memory(void* comm, void* data, std::size_t size, int type, void** memory) = 0;
  virtual Status deregister_memory(void* comm, void* memory) = 0;
  virtual Status send(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) = 0;
  virtual Status receive(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                         void** request) = 0;
  virtual Status flush(void* comm, int count, void** data, int* sizes, void** memory, void** request) = 0;
  virtual Status test(void* request, int* done, int* sizes) = 0;
  virtual Status close_send(void* comm) = 0;
  virtual Status close_receive(void* comm) = 0;
  virtual Status close_listen(void* comm) = 0;

  /// Version 6 to 12 of the plugin in the file; null: there is none. The file stays loaded.
  static std::unique_ptr<NetStandIn> load(const char* file, int version);

  static constexpr int kFirstVersion = 6;
  static constexpr int kLastVersion = 12;
};

/// Writes to standard error: nothing, with NCCL_DEBUG=WARN warnings, with another value all, as NCCL does.
inline void stand_in_log(LogLevel level, unsigned long, const char*, int, const char* format, ...) {
  static const char* const debug = std::getenv("NCCL_DEBUG");
  if (debug == nullptr || (level != LogLevel::warn && std::string_view(debug) == "WARN")) return;
  std::array<char, 512> line;
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  (void)std::fprintf(stderr, "%s\n", line.data());
}

template <typename Table, typename Properties, int kVersion>
class NetStandInOf final : public NetStandIn {
 public:
  explicit NetStandInOf(const Table& table) : table_(table) {}

  Status init() override {
    const Logger logger = stand_in_log;
    if constexpr (kVersion >= 11) {
      return table_.init(&context_, 1, &config_, logger, nullptr);
    } else if constexpr (kVersion == 10) {
      return table_.init(logger, nullptr);
    } else {
      return table_.init(logger);
    }
  }
  Status finalize() override {
    if constexpr (kVersion >= 11) {
      (void)table_.set_attributes(context_, nullptr);
      return table_.finalize(context_);
    }
    return Status::success;
  }
  int devices() override {
    int count = -1;
    return table_.discovery.devices(&count) == Status::success ? count : -1;
  }
  Device device(int number) override {
    Properties properties;
    if (table_.discovery.properties(number, &properties) != Status::success) return {};
    const auto& all = [&]() -> const auto& {
      if constexpr (kVersion == 11) {
        return properties.as_before;
      } else {
        return properties;
      }
    }();
    Device device{all.name, all.pointer_support, all.speed, all.max_receives};
    if constexpr (kVersion >= 9) {
      device.members = all.fused.count;
      device.max_p2p_bytes = all.max_p2p_bytes;
    }
    return device;
  }
  Status fuse(const std::vector<int>& members, int* made) override {
    if constexpr (kVersion >= 9) {
      FusedDevices<kVersion == 12 ? 8 : 4> fused{};
      fused.count = static_cast<int>(members.size());
      for (std::size_t i = 0; i < members.size(); ++i) fused.devices[i] = members[i];
      return table_.fuse(made, &fused);
    }
    return Status::invalid_usage;
  }
  Status listen(int device, void* handle, void** comm) override {
    if constexpr (kVersion >= 11) {
      return table_.listen(context_, device, handle, comm);
    } else {
      return table_.listen(device, handle, comm);
    }
  }
  Status connect(int device, void* handle, void** comm) override {
    void* none = nullptr;
    if constexpr (kVersion >= 11) {
      return table_.connect(context_, device, handle, comm, &none);
    } else if constexpr (kVersion == 10) {
      return table_.connect(device, &config_, handle, comm, &none);
    } else if constexpr (kVersion >= 7) {
      return table_.connect(device, handle, comm, &none);
    } else {
      return table_.connect(device, handle, comm);
    }
  }
  Status accept(void* listener, void** comm) override {
    void* none = nullptr;
    if constexpr (kVersion >= 7) {
      return table_.accept(listener, comm, &none);
    } else {
      return table_.accept(listener, comm);
    }
  }
  Status register_memory(void* comm, void* data, std::size_t size, int type, void** memory) override {
    if constexpr (kVersion >= 8) {
      return table_.memory.register_memory(comm, data, size, type, memory);
    } else {
      return table_.memory.register_memory(comm, data, static_cast<int>(size), type, memory);
    }
  }
  Status deregister_memory(void* comm, void* memory) override { return table_.memory.deregister_memory(comm, memory); }
  Status send(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) override {
    if constexpr (kVersion >= 10) {
      return table_.transfers.send(comm, data, size, tag, memory, nullptr, request);
    } else if constexpr (kVersion == 9) {
      return table_.transfers.send(comm, data, size, tag, memory, request);
    } else {
      return table_.transfers.send(comm, data, static_cast<int>(size), tag, memory, request);
    }
  }
  Status receive(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                 void** request) override {
    if constexpr (kVersion >= 10) {
      return table_.transfers.receive(comm, count, data, sizes, tags, memory, nullptr, request);
    } else if constexpr (kVersion == 9) {
      return table_.transfers.receive(comm, count, data, sizes, tags, memory, request);
    } else {
      std::vector<int> narrow(sizes, sizes + count);
      return table_.transfers.receive(comm, count, data, narrow.data(), tags, memory, request);
    }
  }
  Status flush(void* comm, int count, void** data, int* sizes, void** memory, void** request) override {
    return table_.end.flush(comm, count, data, sizes, memory, request);
  }
  Status test(void* request, int* done, int* sizes) override { return table_.end.test(request, done, sizes); }
  Status close_send(void* comm) override { return table_.end.close_send(comm); }
  Status close_receive(void* comm) override { return table_.end.close_receive(comm); }
  Status close_listen(void* comm) override { return table_.end.close_listen(comm); }

 private:
  const Table& table_;
  void* context_ = nullptr;
  CommunicatorConfig config_{-1};
};

inline std::unique_ptr<NetStandIn> NetStandIn::load(const char* file, int version) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    (void)std::fprintf(stderr, "%s\n", ::dlerror());
    return nullptr;
  }
  const void* const table = ::dlsym(library, ("ncclNetPlugin_v" + std::to_string(version)).c_str());
  if (table == nullptr) return nullptr;
  switch (version) {
    case 6:
      return std::make_unique<NetStandInOf<NetV6, PropertiesV6, 6>>(*static_cast<const NetV6*>(table));
    case 7:
      return std::make_unique<NetStandInOf<NetV7, PropertiesV7, 7>>(*static_cast<const NetV7*>(table));
    case 8:
      return std::make_unique<NetStandInOf<NetV8, PropertiesV8, 8>>(*static_cast<const NetV8*>(table));
    case 9:
      return std::make_unique<NetStandInOf<NetV9, PropertiesV9, 9>>(*static_cast<const NetV9*>(table));
    case 10:
      return std::make_unique<NetStandInOf<NetV10, PropertiesV9, 10>>(*static_cast<const NetV10*>(table));
    case 11:
      return std::make_unique<NetStandInOf<NetV11, PropertiesV11, 11>>(*static_cast<const NetV11*>(table));
    case 12:
      return std::make_unique<NetStandInOf<NetV12, PropertiesV12, 12>>(*static_cast<const NetV12*>(table));
    default:
      return nullptr;
  }
}

}  // namespace warpline::nccl
