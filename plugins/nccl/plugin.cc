// SPDX-License-Identifier: Apache-2.0
#include "nccl/plugin.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

#include "nccl/log.h"
#include "nccl/wire.h"
#include "warpline/base/secrets/draw_secret.h"

namespace warpline::nccl {
namespace {

using HandleBytes = std::span<std::uint8_t, kHandleBytes>;

HandleBytes bytes_of(void* handle) { return HandleBytes(static_cast<std::uint8_t*>(handle), kHandleBytes); }

std::uint32_t processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

Status status_of(const Error& error) {
  return error.kind == ErrorKind::usage ? Status::invalid_usage : Status::system_error;
}

}  // namespace

Status Plugin::init(Logger logger) {
  log_to(logger);
  const std::lock_guard lock(mutex_);
  if (discovered_) return Status::success;
  if (const auto found = discover(); !found) return report(status_of(found.error()), found.error());
  discovered_ = true;
  return Status::success;
}

Result<void> Plugin::discover() {
  WARPLINE_TRY(settings_,
               read_settings([](const char* name) -> const char* { return std::getenv(name); }, processors()));
  WARPLINE_TRY(Nics found, finder_(settings_));
  nics_.clear();
  devices_.clear();
  for (auto& nic : found) {
    const NicFacts& one = nic->facts();
    log(LogLevel::info, fmt::format("{}: {}, MTU {}, {} Mbit/s, {} lanes", one.name, to_string(one.address), one.mtu,
                                    one.speed, settings_.lanes));
    const int number = static_cast<int>(devices_.size());
    devices_.push_back(std::make_unique<Device>(Device{one.name, {number}}));
    nics_.push_back({std::move(nic), {}});
  }
  return {};
}

int Plugin::devices() {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(devices_.size());
}

Result<Plugin::Device*> Plugin::device(int number) {
  if (number < 0 || static_cast<std::size_t>(number) >= devices_.size()) {
    return usage_error(fmt::format("device {}", number), fmt::format("there are {}", devices_.size()));
  }
  return devices_[static_cast<std::size_t>(number)].get();
}

Status Plugin::facts(int number, DeviceFacts& facts) {
  const std::lock_guard lock(mutex_);
  const auto found = device(number);
  if (!found) return report(Status::invalid_argument, found.error());
  Device& device = **found;
  facts.name = device.name.data();
  facts.pci_path = nullptr;
  facts.guid = static_cast<std::uint64_t>(number);
  facts.max_group = settings_.max_group;
  facts.members = device.members;
  facts.speed = 0;
  for (const int member : device.members) facts.speed += nics_[static_cast<std::size_t>(member)].nic->facts().speed;
  const std::string& path = nics_[static_cast<std::size_t>(device.members.front())].nic->facts().pci_path;
  if (!path.empty()) facts.pci_path = const_cast<char*>(path.data());  // NOLINT: NCCL's interface has it so
  return Status::success;
}

Status Plugin::fuse(std::span<const int> members, int* number) {
  const std::lock_guard lock(mutex_);
  const auto is_nic = [&](int one) { return one >= 0 && static_cast<std::size_t>(one) < nics_.size(); };
  if (members.empty() || members.size() > kMaxRails || !std::all_of(members.begin(), members.end(), is_nic)) {
    return report(Status::invalid_usage,
                  usage_error(fmt::format("one device of {} NICs", members.size()),
                              fmt::format("it is made of 1 to {} of the {} NICs", kMaxRails, nics_.size()),
                              "set NCCL_NET_FORCE_MERGE to fewer"));
  }
  Device made;
  for (const int member : members) {
    made.members.push_back(member);
    made.name += (made.name.empty() ? "" : "+") + nics_[static_cast<std::size_t>(member)].nic->facts().name;
  }
  *number = static_cast<int>(devices_.size());
  devices_.push_back(std::make_unique<Device>(std::move(made)));
  return Status::success;
}

Result<std::shared_ptr<Plugin::Lanes>> Plugin::lanes_of(NicInUse& nic) {
  if (auto there = nic.lanes.lock()) return there;
  WARPLINE_TRY(const std::shared_ptr<NicTransports> transports, nic.nic->open(settings_));
  auto made = std::make_shared<Lanes>();
  for (std::uint32_t i = 0; i < settings_.lanes; ++i) {
    WARPLINE_TRY(auto lane, Lane::open(nic.nic->facts(), transports, settings_, i, listeners_));
    made->lanes.push_back(std::move(lane));
  }
  nic.lanes = made;
  return made;
}

Result<Plugin::Rails> Plugin::rails_of(const Device& device) {
  Rails rails;
  std::vector<std::shared_ptr<Lanes>> nics;
  for (const int member : device.members) {
    NicInUse& nic = nics_[static_cast<std::size_t>(member)];
    WARPLINE_TRY(auto lanes, lanes_of(nic));
    rails.addresses.push_back(nic.nic->facts().address);
    rails.keeps.push_back(lanes);
    nics.push_back(std::move(lanes));
  }
  const std::size_t all = std::min<std::size_t>(kMaxLanes, nics.size() * settings_.lanes);
  for (std::size_t i = 0; i < all; ++i) rails.lanes.push_back(nics[i % nics.size()]->lanes[i / nics.size()].get());
  return rails;
}

Status Plugin::listen(int number, void* handle, void** listener) {
  *listener = nullptr;
  const std::lock_guard lock(mutex_);
  const auto made = [&]() -> Result<Listener*> {
    WARPLINE_TRY(Device * on, device(number));
    WARPLINE_TRY(const Rails rails, rails_of(*on));
    auto one = std::make_unique<Listener>();
    one->lanes = rails.lanes;
    one->keeps = rails.keeps;
    // What comes early is of the next group, which then has one receive.
    if (settings_.max_group == 1) one->early_bytes = settings_.early_bytes;
    WARPLINE_TRY(Listener * added, listeners_.add(std::move(one)));
    Handle told;
    told.lanes = static_cast<std::uint8_t>(rails.lanes.size());
    told.rails = static_cast<std::uint8_t>(rails.addresses.size());
    std::copy(rails.addresses.begin(), rails.addresses.end(), told.addresses.begin());
    for (std::size_t i = 0; i < rails.lanes.size(); ++i) told.ports[i] = rails.lanes[i]->port();
    told.listener = added->id;
    told.secret = added->secret;
    write_handle(told, bytes_of(handle));
    return added;
  }();
  if (!made) return report(status_of(made.error()), made.error());
  *listener = *made;
  return Status::success;
}

/// Opens the sessions of a connection; returns the attempt's number.
Result<std::uint64_t> Plugin::begin(int number, const Handle& handle) {
  WARPLINE_TRY(Device * on, device(number));
  WARPLINE_TRY(const Rails rails, rails_of(*on));
  Join join{.listener = handle.listener, .secret = handle.secret, .piece_bytes = settings_.piece_bytes};
  WARPLINE_CHECK(draw_secret(join.connection));
  const std::size_t paths = std::min<std::size_t>(rails.lanes.size(), handle.lanes);
  join.paths = static_cast<std::uint8_t>(paths);
  join.home = static_cast<std::uint8_t>(last_attempt_ % paths);  // so that connections are spread over lanes
  for (std::size_t i = 0; i < paths; ++i) {
    const IpAddress& own = rails.addresses[i % rails.addresses.size()];
    if (own.index() == handle.addresses[i % handle.rails].index()) continue;
    return usage_error(fmt::format("connection from {} to {}", to_string(own), to_string(handle.addresses[0])),
                       "one is IPv4, the other IPv6", "set NCCL_SOCKET_FAMILY to the same on all hosts");
  }
  auto connection = std::make_unique<SendConnection>(
      fmt::format("{} port {}", to_string(handle.addresses[0]), handle.ports[0]), rails.keeps,
      std::span(rails.lanes).first(paths), settings_.piece_bytes, join.home);
  for (std::size_t i = 0; i < paths; ++i) {
    join.path = static_cast<std::uint8_t>(i);
    rails.lanes[i]->open_path(*connection->paths()[i], {handle.addresses[i % handle.rails], handle.ports[i]},
                              write_join(join));
  }
  attempts_[++last_attempt_] = {handle, std::move(connection)};
  return last_attempt_;
}

Status Plugin::connect(int number, void* handle, void** sender) {
  *sender = nullptr;
  const auto told = read_handle(bytes_of(handle));
  if (!told) {
    return report(Status::invalid_argument, usage_error("connect()", "the handle is of no listener of this plugin",
                                                        "use the same NCCL_NET_PLUGIN on all hosts"));
  }
  std::unique_ptr<SendConnection> ended;
  {
    const std::lock_guard lock(mutex_);
    auto attempt = attempts_.find(attempt_of(bytes_of(handle)));
    if (attempt == attempts_.end() || attempt->second.handle != *told) {
      const auto begun = begin(number, *told);
      if (!begun) return report(status_of(begun.error()), begun.error());
      set_attempt(bytes_of(handle), *begun);
      return Status::success;
    }
    const SendConnection& connection = *attempt->second.connection;
    if (!connection.failed() && !connection.joined()) return Status::success;
    ended = std::move(attempt->second.connection);
    attempts_.erase(attempt);
    set_attempt(bytes_of(handle), 0);
  }
  if (ended->failed()) {
    const Status status = ended->failure();
    ended->close();
    return status;
  }
  *sender = static_cast<Connection*>(ended.release());
  return Status::success;
}

Status Plugin::accept(void* listener, void** receiver) {
  *receiver = static_cast<Connection*>(listeners_.accept(*static_cast<Listener*>(listener)).release());
  return Status::success;
}

Status Plugin::close_listener(void* listener) {
  if (listener != nullptr) listeners_.remove(*static_cast<Listener*>(listener));
  return Status::success;
}

Status Plugin::close_connection(void* connection) {
  const std::unique_ptr<Connection> ended(static_cast<Connection*>(connection));
  if (ended) ended->close();
  return Status::success;
}

}  // namespace warpline::nccl
