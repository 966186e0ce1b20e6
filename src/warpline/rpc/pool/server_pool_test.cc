// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/server_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/pending_call.h"

extern char** environ;

namespace warpline::rpc {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr const char* kServerVariable = "WARPLINE_POOL_TEST_SERVER";

MessageHost* serving = nullptr;

/// The body of ServerProcess, which is this program once more. Echoes until it is killed, or has gone away in peace.
TEST(PoolServerProcess, Serves) {
  const char* const address = std::getenv(kServerVariable);
  if (address == nullptr) GTEST_SKIP() << "only inside of the tests of ServerPool";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  MessageHost::Settings settings;
  settings.local = *parse_socket_address(address);
  settings.endpoint.receive_bytes = 4 << 20;
  settings.endpoint.max_sessions = 64;
  auto host = MessageHost::open(settings);
  ASSERT_TRUE(host.ok()) << host.error().message();
  serving = &*host;
  ASSERT_NE(std::signal(SIGTERM, [](int) { serving->drain(Nanos{30'000 * kMillisecond}); }), SIG_ERR);
  ASSERT_EQ(write(STDERR_FILENO, "!", 1), 1);
  host->serve(echo);
}

/// A server that can be killed, stopped and started again. The address is the test's own.
class ServerProcess {
 public:
  explicit ServerProcess(std::size_t number) {
    const auto pid = static_cast<std::uint32_t>(getpid());
    const auto byte = [&](unsigned shift) { return static_cast<std::uint8_t>(pid >> shift); };
    const Ipv4Address ip{{127, static_cast<std::uint8_t>(64 + (byte(16) & 63)), byte(8), byte(0)}};
    address_ = {ip, static_cast<std::uint16_t>(24'300 + number)};
  }
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Returns when it hears.
  void start() {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::string variable = std::string(kServerVariable) + "=" + to_string(address_);
    std::vector<char*> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::array<char*, 3> arguments{const_cast<char*>("rpc_test"),
                                   const_cast<char*>("--gtest_filter=PoolServerProcess.Serves"), nullptr};
    const int failed = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char ready = 0;
    const bool hears = failed == 0 && read(ends[0], &ready, 1) == 1 && ready == '!';
    close(ends[0]);
    ASSERT_TRUE(hears);
  }
  void stop() { ::kill(pid_, SIGSTOP); }
  void go_on() { ::kill(pid_, SIGCONT); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  /// Returns when it has gone away in peace.
  void end() {
    ::kill(pid_, SIGTERM);
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    EXPECT_EQ(status, 0);
  }
  [[nodiscard]] const SocketAddress& address() const { return address_; }

 private:
  SocketAddress address_;
  pid_t pid_ = 0;
};

/// A client with its loop on a thread, and a pool on it.
class Pools : public ::testing::Test {
 protected:
  void start_servers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      servers_.emplace_back(i).start();
      addresses_.push_back(servers_.back().address());
    }
  }
  static ServerPoolSettings quick() {
    ServerPoolSettings settings;
    settings.health.back_off = {.first = Nanos{20 * kMillisecond}, .longest = Nanos{200 * kMillisecond}};
    settings.server_wait = Nanos{30'000 * kMillisecond};
    return settings;
  }
  void start(const ServerPoolSettings& settings) {
    MessageHost::Settings host;
    host.local = kAnyPort;
    host.endpoint.accept = false;
    host.endpoint.receive_bytes = 4 << 20;
    host.endpoint.max_sessions = 64;
    host.endpoint.connect_timeout = Nanos{200 * kMillisecond};
    host.endpoint.peer_timeout = Nanos{2'000 * kMillisecond};
    auto opened = MessageHost::open(host);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    host_.emplace(std::move(opened).value());
    auto made = ServerPool::make(*host_, addresses_, settings);
    ASSERT_TRUE(made.ok()) << made.error().message();
    pool_ = std::move(made).value();
    loop_ = std::thread([this] { host_->run(); });
  }
  void end_loop() {
    if (!loop_.joinable()) return;
    host_->stop();
    loop_.join();
  }
  void TearDown() override {
    end_loop();
    pool_.reset();
  }

  /// Asks and waits; whether the answer was right, if there was one.
  bool ask(const std::string& text, bool idempotent, message::MessageStatus& status) {
    std::string room(text.size(), '\0');
    PendingCall pending;
    Call call{.message = bytes_of(text), .idempotent = idempotent, .patience = Nanos{1000 * kMillisecond}};
    call.response = {reinterpret_cast<std::uint8_t*>(room.data()), static_cast<std::uint32_t>(room.size())};
    EXPECT_EQ(pending.submit(*pool_, call), message::CallStatus::ok);
    const CallResult& result = pending.wait();
    status = result.status;
    return status != message::MessageStatus::ok || (result.length == room.size() && room == text);
  }
  /// Asks until the server is in that state.
  bool reaches(std::size_t number, ServerState state) {
    message::MessageStatus status{};
    for (int i = 0; i < 100'000 && pool_->server(number).state != state; ++i) (void)ask("on", true, status);
    return pool_->server(number).state == state;
  }

  std::deque<ServerProcess> servers_;
  std::vector<SocketAddress> addresses_;
  std::optional<MessageHost> host_;
  std::unique_ptr<ServerPool> pool_;
  std::thread loop_;
};

TEST_F(Pools, AnswerManyThreadsWhileServersAreKilledStoppedAndStartedAgain) {
  start_servers(3);
  ServerPoolSettings settings = quick();
  settings.hedge.on = true;
  settings.sessions = 2;
  std::atomic<int> changes{0};
  settings.on_change = [&](const ServerChange&) { ++changes; };
  start(settings);
  constexpr int kThreads = 4;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> ended{0}, wrong{0}, answered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !over; ++i) {
        std::string text = std::to_string(t) + " asks " + std::to_string(i);
        if (i % 8 == 0) text.append(3000, 'x');
        message::MessageStatus status{};
        wrong += ask(text, i % 4 != 0, status) ? 0 : 1;
        answered += status == message::MessageStatus::ok ? 1 : 0;
        ++ended;
        ended.notify_all();
      }
    });
  }
  const auto wait_for_calls = [&](std::uint64_t count) {
    const std::uint64_t goal = ended + count;
    for (std::uint64_t now = ended; now < goal; now = ended) ended.wait(now);
  };
  for (std::size_t round = 0; round < 6; ++round) {
    ServerProcess& killed = servers_[round % 3];
    ServerProcess& stopped = servers_[(round + 1) % 3];
    wait_for_calls(40);
    killed.kill();
    wait_for_calls(40);
    stopped.stop();
    wait_for_calls(40);
    killed.start();
    wait_for_calls(40);
    stopped.go_on();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(reaches(i, ServerState::up)) << i;
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(answered, 0U);
  EXPECT_GT(changes, 6);
  end_loop();
  EXPECT_EQ(pool_->counters().calls.get(), pool_->counters().ended.get());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(pool_->server(i).calls, 0U);
}

TEST_F(Pools, LoseNoIdempotentCallWhenAServerIsKilled) {
  start_servers(2);
  start(quick());
  ASSERT_TRUE(reaches(0, ServerState::up) && reaches(1, ServerState::up));
  auto queue = CompletionQueue::make(64);
  ASSERT_TRUE(queue.ok());
  constexpr std::uint64_t kCalls = 2000;
  std::vector<int> ends(kCalls);
  std::uint64_t asked = 0;
  for (std::uint64_t done = 0; done < kCalls;) {
    // Without a deadline: each is answered by the one that is left.
    while (asked < kCalls && (*queue)->submit(*pool_, {.message = bytes_of("x"), .idempotent = true}, asked).status ==
                                 message::CallStatus::ok)
      ++asked;
    if (asked >= kCalls / 2) servers_[0].kill();
    std::array<Completion, 16> completions;
    const std::size_t count = (*queue)->poll(completions);
    for (const Completion& completion : std::span(completions).first(count)) {
      ++ends[completion.tag];
      EXPECT_EQ(completion.result.status, message::MessageStatus::ok);
    }
    done += count;
    if (count == 0) (*queue)->wait();
  }
  EXPECT_TRUE(std::ranges::all_of(ends, [](int times) { return times == 1; }));
}

TEST_F(Pools, LendNoAnswersOutOfMemoryOfTheEndpoint) {
  start_servers(1);
  start(quick());
  EXPECT_EQ(pool_->submit({.message = bytes_of("x"), .response_in_endpoint = true}, {}).status,
            message::CallStatus::not_allowed);
}

TEST_F(Pools, LoseNoCallWhenServersAreRestartedInPeaceOneAfterTheOther) {
  start_servers(2);
  start(quick());
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> lost{0}, ended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        PendingCall pending;  // may be handled once only
        EXPECT_EQ(pending.submit(*pool_, {.message = bytes_of("x")}), message::CallStatus::ok);
        lost += pending.wait().status == message::MessageStatus::ok ? 0 : 1;
        ++ended;
      }
    });
  }
  for (std::size_t round = 0; round < 4; ++round) {
    const std::size_t number = round % 2;
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(reaches(i, ServerState::up));
    servers_[number].end();
    servers_[number].start();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0U) << "of " << ended;
}

TEST_F(Pools, CancelFromOtherThreadsAndEndWithTheirHostsLoopOnTheirThread) {
  start_servers(1);
  servers_[0].stop();
  start(quick());
  std::deque<PendingCall> calls(100);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < calls.size(); i += 2) {
        EXPECT_EQ(calls[i].submit(*pool_, {.message = bytes_of("x"), .idempotent = i % 3 == 0}),
                  message::CallStatus::ok);
        if (i % 4 < 2) {
          EXPECT_TRUE(pool_->cancel(calls[i].id()));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i % 4 < 2) {
      EXPECT_EQ(calls[i].wait().status, message::MessageStatus::cancelled);
    }
  }
  // The pool goes, its host lives on.
  struct Ending {
    std::unique_ptr<ServerPool>& pool;
    MessageHost& host;
    SocketAddress address;
    message::SessionId session{};
    std::atomic<bool> ended{false};
  } ending{pool_, *host_, addresses_[0]};
  ASSERT_TRUE(host_->post(
      [](void* context) {
        auto& self = *static_cast<Ending*>(context);
        self.pool.reset();
        const auto session = self.host.connect(self.address);
        self.session = session.ok() ? *session : message::SessionId{};
        self.ended = true;
        self.ended.notify_one();
      },
      &ending));
  ending.ended.wait(false);
  for (PendingCall& call : calls) {
    ASSERT_TRUE(call.done());
    EXPECT_EQ(call.wait().status, message::MessageStatus::cancelled);
  }
  servers_[0].go_on();
  PendingCall call;
  ASSERT_EQ(call.submit(*host_, {.session = ending.session, .message = bytes_of("still there?")}),
            message::CallStatus::ok);
  EXPECT_EQ(call.wait().status, message::MessageStatus::ok);
}

/// In a loop of somebody else's, which sleeps without a bound: what the pool waits for has to wake it.
TEST_F(Pools, HedgeRetryAndLookForServersInALoopOfOnesOwn) {
  start_servers(2);
  ServerPoolSettings settings = quick();
  settings.hedge = {.on = true, .delay = Nanos{5 * kMillisecond}};
  start(settings);
  end_loop();
  const auto descriptor = host_->descriptor();
  ASSERT_TRUE(descriptor.ok());
  ASSERT_TRUE(host_->turn());
  const auto until = [&](const auto& done) {
    while (!done()) {
      pollfd watched{*descriptor, POLLIN, 0};
      ASSERT_EQ(::poll(&watched, 1, -1), 1);
      ASSERT_TRUE(host_->turn());
    }
  };
  const auto all_up = [&] {
    return std::ranges::all_of(std::array{0, 1},
                               [&](std::size_t number) { return pool_->server(number).state == ServerState::up; });
  };
  std::array<std::uint8_t, 8> room;
  const auto ask_once = [&] {
    PendingCall pending;
    const Call call{.message = bytes_of("on"), .response = {room.data(), room.size()}, .idempotent = true};
    EXPECT_EQ(pending.submit(*pool_, call), message::CallStatus::ok);
    until([&] { return pending.done(); });
    EXPECT_EQ(pending.wait().status, message::MessageStatus::ok);
  };
  until(all_up);
  for (int i = 0; i < 20; ++i) ask_once();
  servers_[0].stop();
  while (pool_->server(0).state == ServerState::up) ask_once();
  EXPECT_GE(pool_->counters().hedges_won.get(), 5U);
  servers_[0].go_on();
  until([&] { return pool_->server(0).state == ServerState::trial; });
  ask_once();
  until(all_up);
}

TEST(ServerPool, RefusesSettingsThatMakeNoSense) {
  MessageHost host = open_host();
  const SocketAddress address{Ipv4Address{{127, 0, 0, 1}}, 9};
  const auto refused = [&](std::span<const SocketAddress> servers, const ServerPoolSettings& settings) {
    const auto made = ServerPool::make(host, servers, settings);
    return !made.ok() && made.error().kind == ErrorKind::usage && !made.error().fix.empty();
  };
  const std::array one{address};
  EXPECT_TRUE(refused({}, {}));
  EXPECT_TRUE(refused(one, {.calls = 0}));
  EXPECT_TRUE(refused(one, {.calls = kMaxCalls + 1}));
  EXPECT_TRUE(refused(one, {.sessions = 0}));
  EXPECT_TRUE(refused(one, {.calls_per_session = 0}));
  EXPECT_TRUE(refused(one, {.health = {.failures = 0}}));
  EXPECT_TRUE(refused(one, {.health = {.back_off = {}}}));
  EXPECT_TRUE(refused(one, {.retry = {.attempts = 0}}));
  EXPECT_TRUE(refused(one, {.retry = {.back_off = {.first = Nanos{2}, .longest = Nanos{1}}}}));
  EXPECT_TRUE(refused(one, {.budget = {.per_call = -1}}));
  EXPECT_TRUE(ServerPool::make(host, one, {}).ok());
}

}  // namespace
}  // namespace warpline::rpc
