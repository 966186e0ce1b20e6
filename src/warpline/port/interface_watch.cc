// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/interface_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>

#include <rte_interrupts.h>

namespace warpline::port {
namespace {

struct Watch {
  int socket = -1;
  rte_intr_handle* handle = nullptr;
  void (*gone)(const std::string&) = nullptr;
  std::mutex mutex;  ///< of `names`, which the interrupt thread reads
  std::map<unsigned, std::string> names;
};

Watch& watch() {
  static Watch watch;
  return watch;
}

std::optional<std::string> name_of(unsigned index) {
  Watch& all = watch();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.names.find(index);
  return found == all.names.end() ? std::nullopt : std::optional(found->second);
}

/// Reports the interfaces that are gone. After news were lost.
void look_at_all() {
  std::map<unsigned, std::string> names;
  {
    const std::scoped_lock lock(watch().mutex);
    names = watch().names;
  }
  for (const auto& [index, name] : names) {
    std::array<char, IF_NAMESIZE> unused;
    if (if_indextoname(index, unused.data()) == nullptr && (errno == ENXIO || errno == ENODEV)) watch().gone(name);
  }
}

/// On DPDK's interrupt thread.
void take_news(void* /*unused*/) {
  constexpr std::size_t kNetlinkMost = 32768;  // what the kernel writes at a time (netlink(7))
  alignas(nlmsghdr) static std::array<char, kNetlinkMost> buffer;
  const ssize_t read = recv(watch().socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (read < 0 && errno == ENOBUFS) return look_at_all();
  auto left = read < 0 ? 0U : static_cast<unsigned>(read);
  for (auto* message = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
       message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type != RTM_DELLINK) continue;
    const auto* const link = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
    // A bridge says so, in its own family, of a port that leaves it and is there as before.
    if (link->ifi_family != AF_UNSPEC) continue;
    if (const auto name = name_of(static_cast<unsigned>(link->ifi_index))) watch().gone(*name);
  }
}

/// The socket stays, for the next watch: nothing says that DPDK's thread is not about to look at it.
void close_watch() {
  Watch& all = watch();
  if (all.handle != nullptr) rte_intr_instance_free(all.handle);
  all.handle = nullptr;
}

bool open_socket() {
  Watch& all = watch();
  if (all.socket >= 0) return true;
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = RTMGRP_LINK;
  const int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (made < 0) return false;
  if (bind(made, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) {
    all.socket = made;
  } else {
    close(made);
  }
  return all.socket >= 0;
}

bool open_watch() {
  Watch& all = watch();
  all.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
  if (open_socket() && all.handle != nullptr && rte_intr_fd_set(all.handle, all.socket) == 0 &&
      rte_intr_type_set(all.handle, RTE_INTR_HANDLE_EXT) == 0 &&
      rte_intr_callback_register(all.handle, take_news, nullptr) == 0) {
    return true;
  }
  close_watch();
  return false;
}

}  // namespace

void watch_interface(unsigned index, const std::string& name, void (*gone)(const std::string& name)) {
  Watch& all = watch();
  all.gone = gone;
  {
    const std::scoped_lock lock(all.mutex);
    all.names.insert_or_assign(index, name);
  }
  if (all.handle == nullptr && !open_watch()) {
    const std::scoped_lock lock(all.mutex);
    all.names.clear();
  }
}

void end_interface_watch(unsigned index) {
  Watch& all = watch();
  {
    const std::scoped_lock lock(all.mutex);
    if (all.names.erase(index) == 0 || !all.names.empty()) return;
  }
  // Without the lock: it waits for a call that has begun.
  rte_intr_callback_unregister_sync(all.handle, take_news, nullptr);
  close_watch();
}

}  // namespace warpline::port
