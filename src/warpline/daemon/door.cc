// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "warpline/transport/nano_clock.h"

namespace warpline::daemon {
namespace {

constexpr int kBacklog = 64;

Error refused(const std::string& path, std::string_view call, std::string fix) {
  return environment_error(fmt::format("socket {}", path),
                           fmt::format("{}: {}", call, std::generic_category().message(errno)), std::move(fix));
}

void ring(int descriptor) {
  const std::uint64_t one = 1;
  (void)!::write(descriptor, &one, sizeof(one));
}

/// Whether somebody listens at this name. One that nobody does is left over from a daemon that was killed.
bool is_served(const sockaddr_un& address) {
  const int probe = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return true;
  const bool nobody =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 && errno == ECONNREFUSED;
  ::close(probe);
  return !nobody;
}

}  // namespace

ClientRecord ClientRecord::of(const Attachment& client, bool present) {
  const ClientCounters& counters = client.counters;
  ClientRecord record;
  record.credentials = client.credentials();
  record.attached_at = client.attached_at;
  record.present = present;
  record.expelled_for = static_cast<Misdeed>(client.expelled_for.load(std::memory_order_relaxed));
  record.submitted = counters.submitted.get();
  record.turned_away = counters.turned_away.get();
  record.sent = counters.sent.get();
  record.sessions_opened = counters.sessions_opened.get();
  record.delivered = counters.delivered.get();
  record.answered = counters.answered.get();
  record.declined = counters.declined.get();
  record.overflowed = counters.overflowed.get();
  record.bytes_out = counters.bytes_out.get();
  record.bytes_in = counters.bytes_in.get();
  for (std::size_t i = 0; i < record.completed.size(); ++i) record.completed[i] = counters.completed[i].get();
  return record;
}

void ClientRecord::add(const ClientRecord& other) {
  submitted += other.submitted;
  turned_away += other.turned_away;
  sent += other.sent;
  sessions_opened += other.sessions_opened;
  delivered += other.delivered;
  answered += other.answered;
  declined += other.declined;
  overflowed += other.overflowed;
  bytes_out += other.bytes_out;
  bytes_in += other.bytes_in;
  for (std::size_t i = 0; i < completed.size(); ++i) completed[i] += other.completed[i];
}

Door::Door(const DaemonSettings& settings, std::function<void()> wake)
    : settings_(settings), wake_(std::move(wake)), arrivals_(settings.clients), departures_(settings.clients) {
  present_.reserve(settings.clients);
}

Result<std::unique_ptr<Door>> Door::open(const DaemonSettings& settings, std::function<void()> wake) {
  std::unique_ptr<Door> door(new Door(settings, std::move(wake)));
  WARPLINE_CHECK(door->listen());
  try {
    door->thread_ = std::thread([self = door.get()] { self->run(); });
  } catch (const std::system_error& refused) {
    return environment_error("thread of a daemon", refused.code().message(), "raise the limit of threads");
  }
  return door;
}

Result<void> Door::listen() {
  const std::string& path = settings_.path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return usage_error(fmt::format("socket '{}'", path),
                       fmt::format("a name has 1 to {} bytes", sizeof(address.sun_path) - 1), "use another one");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  wake_descriptor_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (wake_descriptor_ < 0 || reserve_ < 0 || listener_ < 0) return refused(path, "socket", "raise ulimit -n");
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener_, name, sizeof(address)) != 0) {
    struct stat there{};
    const int why = errno;
    const bool left_over =
        why == EADDRINUSE && ::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode) && !is_served(address);
    if (!left_over || ::unlink(path.c_str()) != 0 || ::bind(listener_, name, sizeof(address)) != 0) {
      errno = why;
      return refused(path, "bind", "end what is there, or use another --attach");
    }
  }
  struct stat made{};
  (void)::lstat(path.c_str(), &made);
  device_ = made.st_dev;
  inode_ = made.st_ino;
  // Before listen(): until then nobody is let in.
  if (::chmod(path.c_str(), settings_.mode) != 0) return refused(path, "chmod", "use another --attach");
  if (::listen(listener_, kBacklog) != 0) return refused(path, "listen", "use another --attach");
  return {};
}

Door::~Door() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) {
    ring(wake_descriptor_);
    thread_.join();
  }
  remove_name();
  for (const int descriptor : {listener_, wake_descriptor_, reserve_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

/// Unless somebody else has taken it meanwhile.
void Door::remove_name() {
  struct stat there{};
  if (inode_ == 0 || ::lstat(settings_.path.c_str(), &there) != 0) return;
  if (there.st_dev == device_ && there.st_ino == inode_) ::unlink(settings_.path.c_str());
  inode_ = 0;
}

void Door::close() {
  closed_.store(true, std::memory_order_relaxed);
  ring(wake_descriptor_);
}

void Door::run() {
  bool listens = true;
  while (!stop_.load(std::memory_order_relaxed)) {
    std::array<pollfd, 2> watched{{{wake_descriptor_, POLLIN, 0}, {listens ? listener_ : -1, POLLIN, 0}}};
    (void)::poll(watched.data(), watched.size(), -1);
    std::uint64_t count = 0;
    (void)!::read(wake_descriptor_, &count, sizeof(count));
    bury();
    if (listens && closed_.load(std::memory_order_relaxed)) {
      listens = false;
      remove_name();
      ::close(std::exchange(listener_, -1));
    }
    if (listens && (watched[1].revents & POLLIN) != 0) let_in();
  }
  bury();
}

void Door::let_in() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket >= 0) {
    look_at(socket);
  } else if (errno == EMFILE || errno == ENFILE) {
    accept_without_descriptors();
  }
}

/// Who waits at the door would keep it busy for ever.
void Door::accept_without_descriptors() {
  if (reserve_ >= 0) ::close(std::exchange(reserve_, -1));
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket >= 0) {
    refuse(socket, client::Welcome::no_memory, counters_.refused_descriptors);
  } else {
    (void)::poll(nullptr, 0, 10);  // somebody else took it: do not spin
  }
  reserve_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void Door::refuse(int socket, client::Welcome::Status status, Counter& counter) {
  client::Welcome welcome;
  welcome.status = status;
  counter.add(1);
  (void)::send(socket, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::close(socket);
}

void Door::look_at(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  const bool allowed = settings_.users.empty() || std::ranges::find(settings_.users, peer.uid) != settings_.users.end();
  if (!known || !allowed) {
    refuse(socket, client::Welcome::not_allowed, counters_.refused_user);
    return;
  }
  std::size_t of_user = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& client : present_) of_user += client->credentials().user == peer.uid ? 1 : 0;
    if (present_.size() >= settings_.clients) of_user = SIZE_MAX;
  }
  const std::size_t most = settings_.clients_per_user == 0 ? settings_.clients : settings_.clients_per_user;
  if (of_user >= most) {
    refuse(socket, client::Welcome::full, counters_.refused_full);
    return;
  }
  const int kept = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);  // to tell it, if there is no memory
  if (kept < 0) {
    refuse(socket, client::Welcome::no_memory, counters_.refused_descriptors);
    return;
  }
  auto made = Attachment::make(settings_.client, {peer.pid, peer.uid}, socket);
  if (!made) {
    refuse(kept, client::Welcome::no_memory, counters_.refused_memory);
    return;
  }
  ::close(kept);
  std::unique_ptr<Attachment> client = std::move(made).value();
  client->attached_at = transport::NanoClock().now();
  if (!client->welcome()) return;  // it did not wait
  Attachment* const handed = client.get();
  {
    const std::scoped_lock lock(mutex_);
    present_.push_back(std::move(client));
  }
  counters_.attached.add(1);
  (void)arrivals_.push(handed);  // it has a place for each that may be present
  wake_();
}

bool Door::arrived(Attachment*& client) { return arrivals_.pop(client); }

void Door::give_back(Attachment* client) {
  (void)departures_.push(client);
  ring(wake_descriptor_);
}

void Door::bury() {
  Attachment* gone = nullptr;
  while (departures_.pop(gone)) {
    std::unique_ptr<Attachment> last;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = std::ranges::find(present_, gone, &std::unique_ptr<Attachment>::get);
      last = std::move(*found);
      present_.erase(found);
      const ClientRecord record = ClientRecord::of(*last, false);
      past_total_.add(record);
      past_.push_back(record);
      if (past_.size() > kMostPast) past_.pop_front();
    }
    counters_.detached.add(1);
  }
}

std::vector<ClientRecord> Door::records() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ClientRecord> records(past_.begin(), past_.end());
  for (const auto& client : present_) records.push_back(ClientRecord::of(*client, true));
  return records;
}

ClientRecord Door::total() const {
  const std::scoped_lock lock(mutex_);
  ClientRecord total = past_total_;
  for (const auto& client : present_) total.add(ClientRecord::of(*client, true));
  return total;
}

}  // namespace warpline::daemon
