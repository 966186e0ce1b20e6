// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nccl/settings.h"
#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/transport/transport.h"

namespace warpline::nccl {

/// What is known of a NIC.
struct NicFacts {
  std::string name;          ///< as its user calls it
  IpAddress address{};       ///< that its lanes are reached at
  std::uint32_t mtu = 1500;  ///< bytes of IP
  bool local = false;        ///< reaches this machine alone, where nothing but a receiver's buffer can be full
  int speed = 10'000;        ///< Mbit/s; 10,000 where the driver does not say, as NCCL's sockets assume
  std::string pci_path;      ///< in /sys; empty of a virtual one
};

/// What carries the datagrams of one lane.
struct LaneTransport {
  transport::Transport& transport;   ///< its NIC's, for the lane's thread
  std::uint16_t port = 0;            ///< UDP: the lane's own
  std::uint32_t datagram_bytes = 0;  ///< UDP payload at most
  std::uint32_t buffer_bytes = 0;    ///< of received datagrams that wait, before some are lost
};

/// The transports of a NIC's lanes, while somebody uses them.
class NicTransports {
 public:
  NicTransports() = default;
  virtual ~NicTransports() = default;
  NicTransports(const NicTransports&) = delete;
  NicTransports& operator=(const NicTransports&) = delete;

  /// That of a lane, numbered from 0 to Settings::lanes.
  virtual LaneTransport of_lane(std::uint32_t number) = 0;
  virtual void enter() {}      ///< by each lane's thread, before it uses its transport
  virtual void leave() {}      ///< and after it has
  virtual void tend(Nanos) {}  ///< once a second or so, by the thread of lane 0
  /// What keeps datagrams from passing, as a reason and what to do; nothing: it is not the NIC. Any thread.
  [[nodiscard]] virtual std::optional<Error> trouble() const { return std::nullopt; }
};

/// A NIC of this machine that connections may use. One thread at a time.
class Nic {
 public:
  Nic() = default;
  virtual ~Nic() = default;
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  [[nodiscard]] virtual const NicFacts& facts() const = 0;
  /// Makes transports for settings.lanes lanes. Environment error: the machine does not give what they need.
  [[nodiscard]] virtual Result<std::shared_ptr<NicTransports>> open(const Settings& settings) = 0;
};

using Nics = std::vector<std::unique_ptr<Nic>>;

}  // namespace warpline::nccl
