// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/message_daemon.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include "warpline/base/give_way.h"

namespace warpline::daemon {
namespace {

constexpr Nanos kPollFor{50'000};                  ///< over transports that only poll: to give way costs a system call
constexpr std::int64_t kBetweenLooks = 1'000'000;  ///< ns; at sockets while there is work
constexpr std::int64_t kGoodbye = 200'000'000;     ///< ns for what is left after the drain
constexpr int kSocketsALook = 64;
constexpr std::uintptr_t kProcess = 1;  ///< beside an Attachment's address, of an event: of its process

}  // namespace

MessageDaemon::MessageDaemon(message::Endpoint endpoint, const message::EndpointConfig& config,
                             transport::Transport& transport, const DaemonSettings& settings, bool gives_way)
    : endpoint_(std::move(endpoint)),
      transport_(transport),
      drain_(settings.drain),
      poll_for_(settings.poll_for.value_or(transport.descriptor() < 0 ? kPollFor : Nanos{0})),
      gives_way_(gives_way),
      broker_(endpoint_, config, settings) {}

Result<std::unique_ptr<MessageDaemon>> MessageDaemon::open(message::Endpoint endpoint,
                                                           const message::EndpointConfig& config,
                                                           transport::Transport& transport,
                                                           const DaemonSettings& settings, bool gives_way) {
  std::unique_ptr<MessageDaemon> made(new MessageDaemon(std::move(endpoint), config, transport, settings, gives_way));
  WARPLINE_CHECK(made->prepare(settings));
  return made;
}

Result<void> MessageDaemon::prepare(const DaemonSettings& settings) {
  WARPLINE_TRY(wake_, transport::WakeUp::make());
  watched_ = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (watched_ < 0 || ::epoll_ctl(watched_, EPOLL_CTL_ADD, wake_->descriptor(), &event) != 0) {
    return environment_error("epoll of a daemon", std::generic_category().message(errno), "raise ulimit -n");
  }
  transport_.wake_by(watched_);
  WARPLINE_TRY(door_, Door::open(settings, [this] { wake_->wake(); }));
  return {};
}

MessageDaemon::~MessageDaemon() {
  door_.reset();  // its thread wakes this
  transport_.wake_by(-1);
  if (watched_ >= 0) ::close(watched_);
}

void MessageDaemon::stop() {
  stop_.store(true, std::memory_order_relaxed);
  wake_->wake();
}

void MessageDaemon::run() {
  Nanos idle_since = clock_.now();
  Turns turns(gives_way_);
  while (true) {
    const Nanos now = clock_.now();
    const bool worked = turn(now);
    if (now.value - looked_.value >= kBetweenLooks) look(now);
    if (!go_on(now) || transport_.failed()) break;
    if (worked) {
      idle_since = now;
      turns.end(true);
    } else if (now.value - idle_since.value >= poll_for_.value) {
      sleep(now);
    }
  }
  // The transport failed, perhaps, and nothing comes to an end any more: what is with the endpoint is not used again.
  for (Attachment* const client : broker_.clients()) {
    if (client != nullptr) client->tell_end(client::AreaEnd::stopped);
  }
  (void)transport::transmit_from(endpoint_, transport_, clock_);
  door_->close();
  done_.store(true, std::memory_order_release);
}

bool MessageDaemon::turn(Nanos now) {
  bool worked = transport::receive_into(endpoint_, transport_, now);
  std::array<message::MessageEvent, 64> events;
  const std::size_t count = transport_.settled() ? endpoint_.poll(events) : 0;
  for (const message::MessageEvent& event : std::span(events).first(count)) broker_.handle(event, now);
  worked = broker_.turn(now) || worked || count != 0;
  broker_.notify();
  return transport::transmit_from(endpoint_, transport_, clock_) != 0 || worked;
}

/// Who has come, who has hung up, and who is done with.
void MessageDaemon::look(Nanos now) {
  looked_ = now;
  Attachment* come = nullptr;
  while (door_->arrived(come)) {
    broker_.attach(*come);
    // Without memory for that in the kernel it is not noticed when it hangs up: it is not served.
    if (!watch(*come) || leaving_) leave(*come, now);
  }
  std::array<epoll_event, kSocketsALook> events;
  const int count = ::epoll_wait(watched_, events.data(), static_cast<int>(events.size()), 0);
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.u64 == 0) continue;  // `wake_`, which end_sleep() reads
    const bool ended = (event.data.u64 & kProcess) != 0;
    auto& client = *reinterpret_cast<Attachment*>(event.data.u64 & ~kProcess);
    if (ended || !client.read_socket()) leave(client, now);
  }
  while (Attachment* const gone = broker_.done_with()) {
    unwatch(*gone);
    door_->give_back(gone);
  }
}

/// False: the kernel has no memory for it.
bool MessageDaemon::watch(Attachment& client) {
  const auto address = reinterpret_cast<std::uintptr_t>(&client);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = address}};
  if (::epoll_ctl(watched_, EPOLL_CTL_ADD, client.socket(), &event) != 0) return false;
  event.data.u64 = address | kProcess;
  return client.process() < 0 || ::epoll_ctl(watched_, EPOLL_CTL_ADD, client.process(), &event) == 0;
}

void MessageDaemon::unwatch(const Attachment& client) {
  (void)::epoll_ctl(watched_, EPOLL_CTL_DEL, client.socket(), nullptr);
  if (client.process() >= 0) (void)::epoll_ctl(watched_, EPOLL_CTL_DEL, client.process(), nullptr);
}

void MessageDaemon::leave(Attachment& client, Nanos now) {
  unwatch(client);
  broker_.leave(client, now);
}

void MessageDaemon::sleep(Nanos now) {
  if (transport_.descriptor() < 0) {  // it polls, and so are the clients
    transport_.wait(now, endpoint_.next_deadline());
    return;
  }
  Nanos until = endpoint_.next_deadline();
  if (draining_until_) until = std::min(until, *draining_until_);
  if (!wake_->begin_sleep()) {
    wake_->end_sleep();
    look(now);
    return;
  }
  broker_.set_sleeping(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // a client's is between its tail and its look at the flag
  if (!broker_.has_submissions()) transport_.wait(now, until);
  broker_.set_sleeping(false);
  wake_->end_sleep();
  look(clock_.now());
}

/// False when all is over.
bool MessageDaemon::go_on(Nanos now) {
  if (!stop_.load(std::memory_order_relaxed)) return true;
  if (!draining_until_) {
    draining_until_ = time_sum(now, drain_);
    door_->close();
    endpoint_.drain(*draining_until_, now);
  }
  const bool late = now >= *draining_until_;
  if (!leaving_ && (late || (endpoint_.drained() && broker_.calls_under_way() == 0))) {
    leaving_ = true;
    broker_.leave_all(now);
    draining_until_ = Nanos{now.value + kGoodbye};
    return true;
  }
  if (!leaving_) return true;
  look(now);
  return !late && !(broker_.empty() && endpoint_.drained());
}

}  // namespace warpline::daemon
