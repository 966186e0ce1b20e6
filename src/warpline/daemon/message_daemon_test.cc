// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/message_daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/scratch_folder_testing.h"
#include "warpline/client/daemon_client.h"
#include "warpline/message/loopback_testing.h"
#include "warpline/transport/udp_socket.h"

// Daemons with sockets and threads, and clients by the library, in one process: what sanitizers see all of.

namespace warpline::daemon {
namespace {

using client::DaemonClient;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// A daemon on a port of loopback that is free, on a thread of its own.
struct Running {
  explicit Running(const DaemonSettings& settings) : path(settings.path) {
    message::EndpointConfig config;
    config.max_sessions = 16;
    config.max_messages = 1024;
    config.receive_bytes = 8U << 20;
    config.peer_timeout = config.connect_timeout = Nanos{30'000'000'000};
    config = with_room_for_clients(config, settings).value();
    socket = transport::UdpSocket::open({.local = {Ipv4Address{{127, 0, 0, 1}}, 0}}).value();
    auto endpoint = message::Endpoint::create(config, transport::NanoClock().now()).value();
    daemon = MessageDaemon::open(std::move(endpoint), config, *socket, settings, true).value();
    thread = std::thread([this] { daemon->run(); });
  }
  ~Running() { end(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void end() {
    if (!thread.joinable()) return;
    daemon->stop();
    thread.join();
  }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(socket->port()); }

  std::string path;
  std::unique_ptr<transport::UdpSocket> socket;
  std::unique_ptr<MessageDaemon> daemon;
  std::thread thread;
};

class Daemon : public testing::Test {
 protected:
  DaemonSettings settings(std::string_view name = "a") {
    DaemonSettings settings;
    settings.path = (folder.path() / name).string();
    settings.clients = 8;
    settings.client = {.calls = 32, .requests = 16, .sessions = 4, .message_bytes = 20'000};
    return settings;
  }
  static DaemonClient attached(const Running& to) {
    DaemonClient client;
    const int code = client.attach(to.path.c_str());
    EXPECT_EQ(code, WARPLINE_CLIENT_OK) << warpline_client_error(code);
    return client;
  }
  /// The next event; the code that poll() returned as its kind if that was one.
  static warpline_client_event next(DaemonClient& client) {
    warpline_client_event event{};
    for (int got = 0; got == 0;) {
      got = client.poll({&event, 1});
      if (got < 0) event.kind = static_cast<std::uint32_t>(got);
      if (got == 0) client.wait();
    }
    return event;
  }
  static void listen(DaemonClient& client, std::uint16_t code) {
    ASSERT_EQ(client.listen(code), WARPLINE_CLIENT_OK);
    const auto event = next(client);
    ASSERT_EQ(event.kind, WARPLINE_CLIENT_LISTENING);
    ASSERT_EQ(event.status, WARPLINE_CLIENT_STATUS_OK);
  }

  ScratchFolder folder;
};

/// Answers with what was asked until the daemon ends.
void echo(DaemonClient& client) {
  std::array<warpline_client_event, 8> events;
  for (;;) {
    const int count = client.poll(events);
    if (count < 0) return;
    if (count == 0) client.wait();
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.kind != WARPLINE_CLIENT_REQUEST) continue;
      while (client.answer(event.id, DaemonClient::bytes(event), event.code) == WARPLINE_CLIENT_AGAIN) {
      }
    }
  }
}

TEST_F(Daemon, WhatIsHighIsAskedFirst) {
  const Running near(settings("near"));
  DaemonClient client = attached(near);
  // Nobody is there yet: all that is asked waits for the session.
  auto late = transport::UdpSocket::open({.local = {Ipv4Address{{127, 0, 0, 1}}, 0}}).value();
  const std::string there = "127.0.0.1:" + std::to_string(late->port());
  const auto session = client.connect(there.c_str());
  ASSERT_EQ(session.code, WARPLINE_CLIENT_OK);
  const std::string text(3000, 'x');
  for (std::uint16_t i = 0; i < 20; ++i) {
    EXPECT_EQ(client.set_priority(i % 10 == 9 ? WARPLINE_CLIENT_HIGH : WARPLINE_CLIENT_NORMAL), WARPLINE_CLIENT_OK);
    EXPECT_EQ(client.set_priority(2), WARPLINE_CLIENT_BAD) << "and nothing has changed";
    EXPECT_EQ(i % 2 == 0 ? client.request(session.number, i, bytes_of(text)).code
                         : client.send(session.number, i, bytes_of(text)).code,
              WARPLINE_CLIENT_OK);
  }
  const transport::NanoClock clock;
  auto peer = message::Endpoint::create({}, clock.now()).value();
  std::vector<std::uint16_t> codes;
  while (codes.size() < 20 && clock.now() < Nanos{30'000'000'000}) {
    late->wait(clock.now(), peer.next_deadline());
    transport::receive_into(peer, *late, clock.now());
    std::array<message::MessageEvent, 8> events;
    const std::size_t count = peer.poll(events);
    for (const message::MessageEvent& event : std::span(events).first(count)) {
      if (event.kind != message::EventKind::request && event.kind != message::EventKind::message) continue;
      codes.push_back(event.code);
      EXPECT_EQ(peer.release(event.id, clock.now()), message::CallStatus::ok);
    }
    transport::transmit_from(peer, *late, clock);
  }
  ASSERT_EQ(codes.size(), 20U);
  EXPECT_EQ(codes[0], 9);
  EXPECT_EQ(codes[1], 19);
}

TEST_F(Daemon, ClientsAskEachOtherThroughTwoDaemons) {
  const Running near(settings("near"));
  DaemonSettings roomy = settings("far");
  roomy.client.requests = 64;  // for what all askers have under way at once
  Running far(roomy);
  constexpr int kAskers = 3;
  constexpr std::uint64_t kRequests = 500;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    DaemonClient server = attached(far);
    listen(server, static_cast<std::uint16_t>(10 + i));
    threads.emplace_back([client = std::move(server)]() mutable { echo(client); });
  }
  std::vector<std::thread> askers;
  std::atomic<std::uint64_t> right{0};
  for (int asker = 0; asker < kAskers; ++asker) {
    askers.emplace_back([&, asker] {
      DaemonClient client = attached(near);
      const auto session = client.connect(far.address().c_str());
      ASSERT_EQ(session.code, WARPLINE_CLIENT_OK);
      std::uint64_t asked = 0;
      std::uint64_t answered = 0;
      std::array<warpline_client_event, 8> events;
      const auto payload = [&](std::uint64_t tag) {
        const auto made = message::pattern(tag * 37 % (tag % 10 == 0 ? 20'000 : 300), tag + 1000 * asker);
        return std::string(made.begin(), made.end());
      };
      while (answered < kRequests) {
        while (asked < kRequests) {
          const std::string text = payload(asked);
          const auto call =
              client.request(session.number, static_cast<std::uint16_t>(10 + asked % 2), bytes_of(text), asked);
          if (call.code == WARPLINE_CLIENT_AGAIN) break;
          ASSERT_EQ(call.code, WARPLINE_CLIENT_OK);
          ++asked;
        }
        const int count = client.poll(events);
        ASSERT_GE(count, 0);
        if (count == 0) client.wait();
        for (int i = 0; i < count; ++i) {
          const auto& event = events[static_cast<std::size_t>(i)];
          if (event.kind != WARPLINE_CLIENT_RESPONSE) continue;
          ++answered;
          ASSERT_EQ(event.status, WARPLINE_CLIENT_STATUS_OK);
          ASSERT_EQ(DaemonClient::text(event), payload(event.tag));
          ++right;
        }
      }
    });
  }
  for (std::thread& thread : askers) thread.join();
  EXPECT_EQ(right.load(), kAskers * kRequests);
  const ClientRecord all = near.daemon->door().total();
  EXPECT_EQ(all.submitted, kAskers * kRequests);
  EXPECT_EQ(all.completed[0], kAskers * kRequests);
  far.end();
  for (std::thread& thread : threads) thread.join();
}

/// Each end sleeps before each message: a wake-up that is lost would be waited for in vain.
TEST_F(Daemon, SleepersAreWoken) {
  const Running near(settings("near"));
  Running far(settings("far"));
  DaemonClient server = attached(far);
  listen(server, 7);
  std::thread serving([&] { echo(server); });
  DaemonClient client = attached(near);
  const auto session = client.connect(far.address().c_str());
  ASSERT_EQ(next(client).kind, WARPLINE_CLIENT_CONNECTED);
  for (std::uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(client.request(session.number, 7, bytes_of("awake?"), i).code, WARPLINE_CLIENT_OK);
    pollfd watched{client.descriptor(), POLLIN, 0};
    if (i % 2 == 0 && client.arm()) {
      ASSERT_EQ(::poll(&watched, 1, -1), 1);
    }
    const auto event = next(client);
    ASSERT_EQ(event.kind, WARPLINE_CLIENT_RESPONSE);
    ASSERT_EQ(event.tag, i);
  }
  std::array<warpline_client_event, 1> none;
  EXPECT_EQ(client.wait(), 1) << "to give back what was answered last";
  EXPECT_EQ(client.poll(none), 0);
  EXPECT_EQ(client.wait(1000), 0) << "nothing comes";
  far.end();
  serving.join();
}

/// With one room of each, whose bytes the poll before has handed out: a sleep that waited for it would not end.
TEST_F(Daemon, OneRoomIsEnough) {
  DaemonSettings narrow = settings();
  narrow.client = {.calls = 1, .requests = 1, .sessions = 1, .message_bytes = 64};
  const Running daemon(narrow);
  DaemonClient client = attached(daemon);
  listen(client, 3);
  const auto session = client.connect(daemon.address().c_str());
  ASSERT_EQ(session.code, WARPLINE_CLIENT_OK);
  std::array<warpline_client_event, 4> events;
  int sent = 0;
  int came = 0;
  int ended = 0;
  while (came < 50 || ended < 50) {
    if (sent < 50 && client.send(session.number, 3, bytes_of("one way")).code == WARPLINE_CLIENT_OK) ++sent;
    client.wait();
    const int count = client.poll(events);
    ASSERT_GE(count, 0);
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      came += event.kind == WARPLINE_CLIENT_MESSAGE ? 1 : 0;
      ended += event.kind == WARPLINE_CLIENT_SENT ? 1 : 0;
    }
  }
  EXPECT_EQ(sent, 50);
}

TEST_F(Daemon, WhatMakesNoSenseIsRefusedByTheLibrary) {
  const Running daemon(settings());
  DaemonClient client = attached(daemon);
  const auto limits = client.limits();
  EXPECT_EQ(limits.calls, 32U);
  EXPECT_EQ(limits.requests, 16U);
  EXPECT_EQ(limits.sessions, 4U);
  EXPECT_EQ(limits.message_bytes, 20'000U);
  for (const char* const peer : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "::1:7",
                                 "[::1]7", "[::1:7", "127.0.0.1:7x", "localhost:7", "[fe80::1%nowhere0]:7",
                                 "[1111111111111111111111111111111111111111111111111111111111111111111111111]:7"}) {
    EXPECT_EQ(client.connect(peer).code, WARPLINE_CLIENT_BAD) << peer;
  }
  EXPECT_EQ(client.close(0), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.close(99), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.request(0, 1, {}).code, WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.cancel(0), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.cancel(~0ULL), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.answer(0, {}), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.decline(3), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.listen(1, 0), WARPLINE_CLIENT_BAD);
  EXPECT_EQ(client.listen(0xffff, 2), WARPLINE_CLIENT_BAD);
  const auto session = client.connect("[::1]:7");  // of a daemon on IPv4: it never comes about
  ASSERT_EQ(session.code, WARPLINE_CLIENT_OK);
  const std::vector<std::byte> long_one(20'001);
  EXPECT_EQ(client.request(session.number, 1, long_one).code, WARPLINE_CLIENT_TOO_LONG);
  for (std::uint32_t i = 0; i < limits.calls; ++i) {
    EXPECT_EQ(client.request(session.number, 1, std::span(long_one).first(20'000)).code, WARPLINE_CLIENT_OK);
  }
  EXPECT_EQ(client.request(session.number, 1, {}).code, WARPLINE_CLIENT_AGAIN);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(client.connect("127.0.0.1:9").code, WARPLINE_CLIENT_OK);
  EXPECT_EQ(client.connect("127.0.0.1:9").code, WARPLINE_CLIENT_AGAIN);
  EXPECT_EQ(client.close(session.number), WARPLINE_CLIENT_OK);
  for (std::uint32_t i = 0; i < limits.calls; ++i) {
    const auto event = next(client);
    EXPECT_EQ(event.kind, WARPLINE_CLIENT_RESPONSE);
    EXPECT_EQ(event.status, WARPLINE_CLIENT_STATUS_PEER_LOST);
    EXPECT_EQ(client.cancel(event.id), WARPLINE_CLIENT_BAD) << "it has ended";
  }
  const auto lost = next(client);
  EXPECT_EQ(lost.kind, WARPLINE_CLIENT_LOST);
  EXPECT_STREQ(warpline_client_reason(lost.reason), "closed_here");
  EXPECT_EQ(client.request(session.number, 1, {}).code, WARPLINE_CLIENT_BAD);
}

TEST_F(Daemon, WhoMayNotComeIsTold) {
  DaemonClient client;
  EXPECT_EQ(client.attach(settings().path.c_str()), WARPLINE_CLIENT_NOBODY);
  EXPECT_EQ(client.attach(std::string(200, 'x').c_str()), WARPLINE_CLIENT_BAD);
  DaemonSettings strict = settings("strict");
  strict.users = {::getuid() + 1};
  Running refusing(strict);
  EXPECT_EQ(client.attach(refusing.path.c_str()), WARPLINE_CLIENT_NOT_ALLOWED);
  EXPECT_EQ(refusing.daemon->door().counters().refused_user.get(), 1U);
  DaemonSettings narrow = settings("narrow");
  narrow.clients_per_user = 2;
  narrow.users = {::getuid()};
  const Running full(narrow);
  DaemonClient first = attached(full);
  {
    const DaemonClient second = attached(full);
    EXPECT_EQ(client.attach(full.path.c_str()), WARPLINE_CLIENT_FULL);
  }
  // The second's place is free soon.
  int code = WARPLINE_CLIENT_FULL;
  while (code == WARPLINE_CLIENT_FULL) code = client.attach(full.path.c_str());
  EXPECT_EQ(code, WARPLINE_CLIENT_OK);
  EXPECT_EQ(first.request(0, 1, {}).code, WARPLINE_CLIENT_BAD);
}

/// Somebody else listens there, and says this.
int attach_to_somebody(const std::string& path, std::span<const std::uint8_t> says) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  std::thread stranger([&] {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (!says.empty()) {
      EXPECT_EQ(::send(socket, says.data(), says.size(), 0), static_cast<ssize_t>(says.size()));
    }
    ::close(socket);
  });
  DaemonClient client;
  const int code = client.attach(path.c_str());
  stranger.join();
  ::close(listener);
  ::unlink(path.c_str());
  return code;
}

TEST_F(Daemon, WhoIsNoDaemonIsFound) {
  const std::string path = (folder.path() / "other").string();
  EXPECT_EQ(attach_to_somebody(path, {}), WARPLINE_CLIENT_GONE);
  const std::uint8_t short_one[] = {1, 2, 3};
  EXPECT_EQ(attach_to_somebody(path, short_one), WARPLINE_CLIENT_VERSION);
  client::Welcome welcome;
  const auto bytes = std::span(reinterpret_cast<const std::uint8_t*>(&welcome), sizeof(welcome));
  EXPECT_EQ(attach_to_somebody(path, bytes), WARPLINE_CLIENT_VERSION) << "without an area";
  welcome.version = 2;
  EXPECT_EQ(attach_to_somebody(path, bytes), WARPLINE_CLIENT_VERSION);
}

TEST_F(Daemon, TheSocketIsMadeAndRemoved) {
  DaemonSettings wanted = settings();
  wanted.mode = 0620;
  const auto mode = [&] {
    struct stat facts{};
    return ::stat(wanted.path.c_str(), &facts) == 0 ? facts.st_mode & 0777 : 0;
  };
  {
    const Running daemon(wanted);
    EXPECT_EQ(mode(), 0620U);
    const auto second = Door::open(wanted, [] {});
    ASSERT_FALSE(second.ok()) << "somebody listens there";
    EXPECT_EQ(second.error().kind, ErrorKind::environment);
    EXPECT_EQ(mode(), 0620U);
  }
  EXPECT_EQ(mode(), 0U);
  // What a daemon has left behind that was killed.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, wanted.path.data(), wanted.path.size());
  const int dead = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(dead);
  {
    const Running daemon(wanted);
    const DaemonClient client = attached(daemon);
  }
  // A file of somebody's stays.
  std::ofstream(wanted.path) << "precious";
  const auto refused = Door::open(wanted, [] {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
  EXPECT_TRUE(std::filesystem::is_regular_file(wanted.path));
  for (const std::string& path : {std::string(), std::string(200, 'x')}) {
    wanted.path = path;
    EXPECT_EQ(Door::open(wanted, [] {}).error().kind, ErrorKind::usage);
  }
  wanted.path = (folder.path() / "no such folder" / "a").string();
  EXPECT_EQ(Door::open(wanted, [] {}).error().kind, ErrorKind::environment);
}

TEST_F(Daemon, AnEndInPeaceAnswersWhatHasComeHoweverLongThatTakes) {
  const Running near(settings("near"));
  DaemonSettings patient = settings("far");
  patient.drain = message::kNever;
  auto far = std::make_unique<Running>(patient);
  DaemonClient server = attached(*far);
  listen(server, 1);
  DaemonClient client = attached(near);
  const auto session = client.connect(far->address().c_str());
  ASSERT_EQ(next(client).kind, WARPLINE_CLIENT_CONNECTED);
  ASSERT_EQ(client.request(session.number, 1, bytes_of("before the end")).code, WARPLINE_CLIENT_OK);
  const auto request = next(server);
  ASSERT_EQ(request.kind, WARPLINE_CLIENT_REQUEST);
  far->daemon->stop();
  for (int code = WARPLINE_CLIENT_OK; code == WARPLINE_CLIENT_OK; std::this_thread::yield()) {  // until it drains
    DaemonClient late;
    code = late.attach(far->path.c_str());
  }
  ASSERT_EQ(server.answer(request.id, bytes_of("still answered")), WARPLINE_CLIENT_OK);
  const auto response = next(client);
  EXPECT_EQ(response.status, WARPLINE_CLIENT_STATUS_OK);
  EXPECT_EQ(DaemonClient::text(response), "still answered");
  EXPECT_EQ(next(client).kind, WARPLINE_CLIENT_LOST);
  EXPECT_EQ(static_cast<int>(next(server).kind), WARPLINE_CLIENT_GONE);
  EXPECT_EQ(static_cast<int>(next(server).kind), WARPLINE_CLIENT_GONE) << "still";
  EXPECT_EQ(server.wait(), 1);
  far->end();
  far.reset();
}

TEST_F(Daemon, ManyComeAndGoWhileOneIsServed) {
  Running daemon(settings());
  DaemonClient server = attached(daemon);
  DaemonClient client = attached(daemon);  // before guests who are quicker than the daemon notices that they went
  listen(server, 5);
  std::thread serving([&] { echo(server); });
  std::atomic<bool> stop{false};
  std::vector<std::thread> guests;
  for (int guest = 0; guest < 2; ++guest) {
    guests.emplace_back([&] {
      while (!stop.load()) {
        DaemonClient passing;
        if (passing.attach(daemon.path.c_str()) != WARPLINE_CLIENT_OK) continue;
        const auto session = passing.connect(daemon.address().c_str());
        for (int i = 0; i < 5; ++i) (void)passing.request(session.number, 5, bytes_of("and away"));
        (void)passing.listen(6);
      }
    });
  }
  const auto session = client.connect(daemon.address().c_str());
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(client.request(session.number, 5, bytes_of("goes on")).code, WARPLINE_CLIENT_OK);
    warpline_client_event event = next(client);
    if (event.kind == WARPLINE_CLIENT_CONNECTED) event = next(client);
    ASSERT_EQ(event.kind, WARPLINE_CLIENT_RESPONSE);
  }
  stop = true;
  for (std::thread& guest : guests) guest.join();
  daemon.end();
  serving.join();
  EXPECT_EQ(daemon.daemon->broker().counters().expelled.get(), 0U);
}

/// A service that has forked a worker, made before this process has threads. Both end with it.
class ForkingService {
 public:
  explicit ForkingService(const std::string& path) {
    if (::pipe2(go_.data(), O_CLOEXEC) != 0 || ::pipe2(said_.data(), O_CLOEXEC) != 0) std::abort();
    service_ = ::fork();
    if (service_ == 0) serve(path.c_str());
    ::close(go_[0]);
    ::close(said_[1]);
  }
  ~ForkingService() {
    if (service_ > 0) kill();
    ::close(go_[1]);
    ::close(said_[0]);
  }
  ForkingService(const ForkingService&) = delete;
  ForkingService& operator=(const ForkingService&) = delete;

  /// Returns whether it listens for code 7 and has a worker.
  [[nodiscard]] bool start() {
    char byte = 0;
    return ::write(go_[1], &byte, 1) == 1 && ::read(said_[0], &byte, 1) == 1 && byte == 'l';
  }
  void kill() {
    ::kill(service_, SIGKILL);
    ::waitpid(std::exchange(service_, -1), nullptr, 0);
  }

 private:
  [[noreturn]] void serve(const char* path) {
    ::close(go_[1]);
    char byte = 0;
    if (::read(go_[0], &byte, 1) != 1) ::_exit(1);
    DaemonClient client;
    if (client.attach(path) != WARPLINE_CLIENT_OK || client.listen(7) != WARPLINE_CLIENT_OK) ::_exit(1);
    warpline_client_event event{};
    while (client.poll({&event, 1}) == 0) client.wait();
    if (event.status == WARPLINE_CLIENT_STATUS_OK && ::fork() > 0) (void)!::write(said_[1], "l", 1);
    (void)!::read(go_[0], &byte, 1);
    ::_exit(0);
  }

  std::array<int, 2> go_{};
  std::array<int, 2> said_{};
  pid_t service_ = -1;
};

TEST_F(Daemon, AKilledClientIsGoneWhileAChildOfItLives) {
  ForkingService service((folder.path() / "a").string());
  const Running daemon(settings());
  ASSERT_TRUE(service.start());
  DaemonClient successor = attached(daemon);
  const auto listens = [&] {
    EXPECT_EQ(successor.listen(7), WARPLINE_CLIENT_OK);
    return next(successor).status;
  };
  EXPECT_EQ(listens(), WARPLINE_CLIENT_STATUS_IN_USE);
  service.kill();
  const transport::NanoClock clock;
  std::uint32_t status = WARPLINE_CLIENT_STATUS_IN_USE;
  for (const Nanos end{clock.now().value + 10'000'000'000}; status != WARPLINE_CLIENT_STATUS_OK && clock.now() < end;)
    status = listens();
  EXPECT_EQ(status, WARPLINE_CLIENT_STATUS_OK);
}

}  // namespace
}  // namespace warpline::daemon
