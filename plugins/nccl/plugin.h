// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/abi.h"
#include "nccl/connection.h"
#include "nccl/listeners.h"
#include "nccl/nic.h"
#include "nccl/send_connection.h"
#include "nccl/settings.h"

namespace warpline::nccl {

/// What the plugin says of a NIC, or of several that are used as one. Its text lives as long as the process.
struct DeviceFacts {
  char* name = nullptr;
  char* pci_path = nullptr;  ///< null: virtual
  std::uint64_t guid = 0;
  int speed = 0;  ///< Mbit/s
  int max_group = 1;
  std::vector<int> members;  ///< NICs that it is made of; itself, if it is one
};

/// The plugin behind all versions of the interface: NICs of this machine, lanes on those in use, connections. NCCL may
/// call from several threads; what belongs to one connection, from one at a time. Errors are logged here.
class Plugin {
 public:
  /// Finds the NICs of this machine, of a kind.
  using Finder = Result<Nics> (*)(const Settings& settings);
  explicit Plugin(Finder finder) : finder_(finder) {}
  /// The process's one, which never ends: NCCL tells nobody when it is unloaded. Each library has its own kind of NICs.
  static Plugin& instance();

  /// Looks for NICs, once; later calls take the logger alone.
  Status init(Logger logger);
  int devices();
  Status facts(int device, DeviceFacts& facts);
  /// Makes a device of several, over all of which its connections go.
  Status fuse(std::span<const int> members, int* device);

  Status listen(int device, void* handle, void** listener);
  /// Begins a connection, or looks how far it has come: `sender` stays null until it is there.
  Status connect(int device, void* handle, void** sender);
  Status accept(void* listener, void** receiver);
  Status close_listener(void* listener);
  Status close_connection(void* connection);

 private:
  /// The lanes of a NIC, while anybody uses them.
  struct Lanes {
    std::vector<std::unique_ptr<Lane>> lanes;
  };
  struct NicInUse {
    std::unique_ptr<Nic> nic;
    std::weak_ptr<Lanes> lanes;
  };
  struct Device {
    std::string name;
    std::vector<int> members;
  };
  /// Where the paths of a device's connections go.
  struct Rails {
    std::vector<Lane*> lanes;
    std::vector<std::shared_ptr<void>> keeps;
    std::vector<IpAddress> addresses;  ///< of the NICs
  };
  struct Attempt {
    Handle handle;
    std::unique_ptr<SendConnection> connection;
  };

  Result<void> discover();
  Result<Device*> device(int number);
  Result<std::shared_ptr<Lanes>> lanes_of(NicInUse& nic);
  Result<Rails> rails_of(const Device& device);
  Result<std::uint64_t> begin(int device, const Handle& handle);

  Finder finder_;
  std::mutex mutex_;
  bool discovered_ = false;
  Settings settings_;
  std::vector<NicInUse> nics_;
  std::vector<std::unique_ptr<Device>> devices_;  ///< NICs first
  std::map<std::uint64_t, Attempt> attempts_;
  std::uint64_t last_attempt_ = 0;
  Listeners listeners_;
};

}  // namespace warpline::nccl
