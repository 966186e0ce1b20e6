// SPDX-License-Identifier: Apache-2.0
// Everything at once: several threads ask several hosts, in one piece and in many, for answers of 0 to 64 KiB, more at
// once than there are jobs; handlers answer, decline, or stand at a gate; callers cancel, or have no patience; sessions
// come and go; servers drain, end amidst work, and come back. Whatever happens each call ends once and each is handled
// once at most. Nothing here sleeps: who stands at a gate is let go by a thread that waits for him.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/multi_endpoint.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/rpc/streams/streams_testing.h"

namespace warpline::rpc {
namespace {

using message::CallStatus;
using message::MessageStatus;

constexpr Nanos kPatient{60'000'000'000};
constexpr std::uint32_t kAskingHosts = 2;
constexpr std::uint32_t kThreadsAClient = 2;
constexpr std::uint32_t kCallsAThread = 1000;
constexpr std::uint32_t kSessionsAClient = 3;
constexpr std::uint32_t kAskers = kAskingHosts * kThreadsAClient;
constexpr std::uint32_t kJobs = 8;  // of handler threads; callers have many times as many under way
constexpr std::uint32_t kLengths[] = {0, 1, 100, 128, 129, 1000, 4096, 65'536};

/// What the handler is to do, as the request says.
enum class Manner : std::uint8_t { answer, decline, gate, leave };
constexpr std::uint32_t kManners = 4;

/// The begin of each request.
struct Ask {
  std::uint32_t call = 0;
  std::uint32_t answer_length = 0;
  Manner manner = Manner::answer;
};

std::uint8_t answer_byte(std::uint32_t call, std::size_t at) { return static_cast<std::uint8_t>(call * 7 + at); }

/// Where handlers stand until the one thread that waits for them lets them go, one after the other.
class Gate {
 public:
  Gate() : keeper_([this] { keep(); }) {}
  ~Gate() {
    ended_ = true;
    came_.fetch_add(1);
    came_.notify_all();
    keeper_.join();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void pass() {
    const std::uint32_t ticket = came_.fetch_add(1);
    came_.notify_all();
    for (std::uint32_t open = open_; open <= ticket; open = open_) open_.wait(open);
    ++passed_;
  }
  [[nodiscard]] std::uint32_t passed() const { return passed_; }

 private:
  void keep() {
    while (!ended_) {
      const std::uint32_t open = open_;
      if (came_ == open) {
        came_.wait(open);
        continue;
      }
      ++open_;
      open_.notify_all();
    }
  }

  std::atomic<std::uint32_t> came_{0};
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint32_t> passed_{0};
  std::atomic<bool> ended_{false};
  std::thread keeper_;
};

/// One call from its submission to its end. The endpoint has the two buffers until then.
struct CallRecord {
  std::vector<std::uint8_t> request;
  std::vector<std::uint8_t> room;
  CallId id{};
  bool accepted = false;
  std::atomic<std::uint32_t> ended{0};
  std::atomic<std::uint32_t> handled{0};
  std::atomic<std::uint32_t> answered{0};  ///< the handler gave an answer
  MessageStatus status = MessageStatus::ok;
};

/// What all of a run share.
struct StressRun {
  StressRun() : records(kAskers * kCallsAThread) {}

  std::vector<CallRecord> records;
  std::atomic<std::uint32_t> begun{0};
  Gate gate;

  /// Takes note of a request that came to a handler. Null: it is none of ours.
  CallRecord* take(std::span<const std::uint8_t> bytes, Ask& ask) {
    if (bytes.size() < sizeof(Ask)) return nullptr;
    std::memcpy(&ask, bytes.data(), sizeof(Ask));
    if (ask.call >= records.size()) return nullptr;
    EXPECT_EQ(records[ask.call].handled.fetch_add(1), 0U) << "call " << ask.call;
    return &records[ask.call];
  }
  /// What a handler does; nothing: it declines.
  std::optional<std::size_t> handle(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> room) {
    Ask ask;
    CallRecord* const record = take(bytes, ask);
    if (record == nullptr || ask.manner == Manner::decline) return std::nullopt;
    if (ask.manner == Manner::gate) gate.pass();
    for (std::size_t i = 0; i < ask.answer_length; ++i) room[i] = answer_byte(ask.call, i);
    record->answered = 1;
    return ask.answer_length;
  }
  /// The same of a call in pieces, whose pieces go back as they came.
  void handle(CallStream& stream) {
    Ask ask;
    if (take(stream.request(), ask) == nullptr || ask.manner == Manner::decline) return;
    if (ask.manner == Manner::gate) gate.pass();
    std::span<const std::uint8_t> piece;
    if (ask.manner == Manner::leave) {  // with its answer while pieces come
      (void)stream.read(piece);
      (void)stream.finish(1);
      return;
    }
    while (stream.read(piece) && stream.write(piece)) {
    }
    (void)stream.finish(2, stream.request());
  }

  static void end(void* self, std::uint64_t call, const CallResult& result) {
    static_cast<StressRun*>(self)->end(static_cast<std::uint32_t>(call), result);
  }
  void end(std::uint32_t call, const CallResult& result) {
    CallRecord& record = records[call];
    record.status = result.status;
    if (result.status == MessageStatus::ok && !record.room.empty()) {
      Ask ask;
      std::memcpy(&ask, record.request.data(), sizeof(Ask));
      bool right = result.length == ask.answer_length && result.data == record.room.data();
      for (std::size_t i = 0; right && i < result.length; ++i) right = result.data[i] == answer_byte(call, i);
      EXPECT_TRUE(right) << "call " << call << " of " << result.length << " bytes";
    }
    ++record.ended;
  }
};

MessageHost::Settings stress_settings(std::uint16_t port) {
  MessageHost::Settings settings;
  settings.local = {kAnyPort.address, port};
  settings.calls = 64;
  settings.endpoint.receive_bytes = 8 << 20;
  settings.endpoint.max_sessions = 64;
  settings.endpoint.max_messages = 512;
  settings.endpoint.connect_timeout = kPatient;
  settings.endpoint.peer_timeout = Nanos{2'000'000'000};  // who is gone is asked for after a quarter
  settings.endpoint.keepalive = settings.endpoint.max_rto = Nanos{20'000'000};
  settings.streams.streams = 8;
  return settings;
}

/// How a server handles requests.
enum class ServerKind : std::uint8_t { by_its_loop, on_threads, by_two_endpoints, on_threads_of_two_endpoints };

/// A server of that kind, which runs until it is stopped or has drained.
class AskedHosts {
 public:
  AskedHosts(StressRun& run, ServerKind kind, std::uint16_t port) {
    MultiEndpoint::Settings multi;
    multi.host = stress_settings(port);
    multi.threads = kind == ServerKind::by_its_loop || kind == ServerKind::on_threads ? 1 : 2;
    auto opened = MultiEndpoint::open(multi);
    if (!opened) throw std::runtime_error(opened.error().message());
    server_.emplace(std::move(opened).value());
    for (std::uint32_t i = 0; i < server_->threads(); ++i) {
      MessageHost& host = server_->host(i);
      EXPECT_TRUE(host.take_streams_on_threads(2, [&run](CallStream& stream, unsigned) { run.handle(stream); }).ok());
      if (kind == ServerKind::by_its_loop || kind == ServerKind::by_two_endpoints) {
        host.handle([&run](auto request, auto room) { return run.handle(request, room); });
        continue;
      }
      const HandlerThreadsSetup setup{
          .threads = 3, .requests = kJobs, .response_bytes = 65'536, .by_session = kind == ServerKind::on_threads};
      EXPECT_TRUE(host.handle_on_threads(
                          setup,
                          [&run](HandledRequest& request, unsigned) {
                            const auto length = run.handle({request.data.data, request.data.length}, request.room);
                            request.declined = !length;
                            request.answer = {request.room.data(), static_cast<std::uint32_t>(length.value_or(0))};
                          })
                      .ok());
    }
    loop_ = std::thread([this] { EXPECT_TRUE(server_->run().ok()); });
  }
  ~AskedHosts() {
    server_->stop();
    loop_.join();
  }
  AskedHosts(const AskedHosts&) = delete;
  AskedHosts& operator=(const AskedHosts&) = delete;

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  /// Until it is over.
  void drain() {
    server_->drain(kPatient);
    loop_.join();
    for (std::uint32_t i = 0; i < server_->threads(); ++i) EXPECT_TRUE(server_->host(i).endpoint().drained());
    loop_ = std::thread([] {});
  }

 private:
  std::optional<MultiEndpoint> server_;
  std::thread loop_;
};

/// A host that asks, with some sessions; one that is lost, or was given up, has another in its place.
class AskingHost {
 public:
  explicit AskingHost(std::uint16_t server) : host_(open()), server_{kAnyPort.address, server} {
    for (std::atomic<message::SessionId>& session : sessions_) session = connect();
    host_.listen([this](const message::MessageEvent& event) {
      if (event.kind != message::EventKind::lost) return;
      for (std::atomic<message::SessionId>& session : sessions_) {
        if (session.load() != event.session) continue;
        (void)host_.endpoint().forget(event.session, host_.now());
        session = connect();
      }
    });
    loop_ = std::thread([this] { host_.run(); });
  }
  ~AskingHost() { stop(); }
  AskingHost(const AskingHost&) = delete;
  AskingHost& operator=(const AskingHost&) = delete;

  void stop() {
    host_.stop();
    if (loop_.joinable()) loop_.join();
  }
  [[nodiscard]] MessageHost& host() { return host_; }
  [[nodiscard]] message::SessionId session(std::uint64_t any) const { return sessions_[any % kSessionsAClient]; }
  /// Gives one session up, with all its calls, and opens another.
  void renew() { (void)host_.post(renew, this); }

 private:
  static MessageHost open() {
    auto host = MessageHost::open(stress_settings(0));
    if (!host) throw std::runtime_error(host.error().message());
    return std::move(host).value();
  }
  message::SessionId connect() {
    const auto opened = host_.connect(server_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? *opened : message::SessionId{};
  }
  static void renew(void* self) {
    AskingHost& client = *static_cast<AskingHost*>(self);
    std::atomic<message::SessionId>& session = client.sessions_[client.renewed_++ % kSessionsAClient];
    (void)client.host_.endpoint().close(session, client.host_.now());
    (void)client.host_.endpoint().forget(session, client.host_.now());
    session = client.connect();
  }

  MessageHost host_;
  SocketAddress server_;
  std::array<std::atomic<message::SessionId>, kSessionsAClient> sessions_{};
  std::uint32_t renewed_ = 0;
  std::thread loop_;
};

/// What one thread asks. Calls by their records, whose end the host, or its queue of completions, is told.
class Asker {
 public:
  Asker(StressRun& run, AskingHost& client, std::uint32_t number)
      : run_(run), client_(client), first_(number * kCallsAThread), random_(mix64(number + 1)) {}

  void ask_all() {
    const auto completions = CompletionQueue::make(32).value();
    for (std::uint32_t i = 0; i < kCallsAThread; ++i) {
      const std::uint32_t call = first_ + i;
      ++run_.begun;
      run_.begun.notify_all();
      if (random_.below(100) == 0) client_.renew();
      switch (random_.below(8)) {
        case 0:
          ask_and_wait(call);
          break;
        case 1:
          ask_in_pieces(call);
          break;
        case 2:
          submit(call, [&](const Call& asked) {
            take(*completions);  // which make room for others
            return completions->submit(client_.host(), asked, call);
          });
          ++queued_;
          break;
        default:
          submit(call, [&](const Call& asked) { return client_.host().submit(asked, {StressRun::end, &run_, call}); });
      }
      if (random_.below(8) == 0) {
        const CallRecord& one = run_.records[first_ + random_.below(i + 1)];
        if (one.accepted) (void)client_.host().cancel(one.id);
      }
    }
    while (queued_ != 0) {
      completions->wait();
      take(*completions);
    }
  }

 private:
  Ask draw(std::uint32_t call) {
    CallRecord& record = run_.records[call];
    const Ask ask{call, kLengths[random_.below(std::size(kLengths))],
                  random_.below(2) == 0 ? Manner::answer : static_cast<Manner>(random_.below(kManners))};
    record.request.assign(std::max<std::size_t>(sizeof(Ask), kLengths[random_.below(6)]), 0);
    std::memcpy(record.request.data(), &ask, sizeof(Ask));
    record.room.resize(ask.answer_length);
    return ask;
  }
  Nanos patience() {
    switch (random_.below(8)) {
      case 0:
        return Nanos{0};
      case 1:
        return Nanos{static_cast<std::int64_t>(random_.below(3'000'000))};
      default:
        return message::kNever;
    }
  }
  Call call_of(std::uint32_t call) {
    (void)draw(call);
    CallRecord& record = run_.records[call];
    return {.session = client_.session(random_.next()),
            .message = {record.request.data(), static_cast<std::uint32_t>(record.request.size())},
            .response = {record.room.data(), static_cast<std::uint32_t>(record.room.size())},
            .patience = patience()};
  }
  template <typename Submit>
  void submit(std::uint32_t call, const Submit& give) {
    const Call asked = call_of(call);
    CallRecord& record = run_.records[call];
    record.accepted = true;
    for (;;) {
      const SubmittedCall submitted = give(asked);
      if (submitted.status == CallStatus::ok) {
        record.id = submitted.id;
        return;
      }
      ASSERT_EQ(submitted.status, CallStatus::no_memory);
      std::this_thread::yield();
    }
  }
  void ask_and_wait(std::uint32_t call) {
    const Call asked = call_of(call);
    CallRecord& record = run_.records[call];
    PendingCall pending;
    CallStatus status = CallStatus::no_memory;
    while ((status = pending.submit(client_.host(), asked)) == CallStatus::no_memory) std::this_thread::yield();
    ASSERT_EQ(status, CallStatus::ok);
    record.accepted = true;
    record.id = pending.id();
    if (random_.below(8) == 0) (void)client_.host().cancel(pending.id());
    run_.end(call, pending.wait());
  }
  void take(CompletionQueue& completions) {
    std::array<Completion, 16> ends;
    const std::size_t count = completions.poll(ends);
    for (std::size_t i = 0; i < count; ++i) run_.end(static_cast<std::uint32_t>(ends[i].tag), ends[i].result);
    queued_ -= static_cast<std::uint32_t>(count);
  }
  void ask_in_pieces(std::uint32_t call) {
    (void)draw(call);
    CallRecord& record = run_.records[call];
    record.room.clear();
    const std::uint64_t seed = mix64(call);
    OpenedStream opened =
        client_.host().open_stream({.session = client_.session(random_.next()),
                                    .request = std::span<const std::uint8_t>(record.request).first(sizeof(Ask)),
                                    .patience = patience()});
    if (opened.status == CallStatus::no_memory) return;
    ASSERT_EQ(opened.status, CallStatus::ok);
    CallStream& stream = opened.stream;
    record.accepted = true;
    const std::uint64_t how = random_.below(8);
    // Less than a window both ways, so that one thread may write all before it reads.
    const PieceWriter writer{.seed = seed, .pieces = static_cast<std::uint32_t>(random_.below(20)), .longest = 2000};
    bool open = true;
    for (std::uint32_t i = 0; open && i < writer.pieces; ++i)
      open = stream.write(PieceWriter::piece(seed, i, writer.longest));
    if (how == 0) stream.cancel();
    if (how != 1) stream.end_writing();
    if (how == 1 || how == 2) {  // it goes, whatever came
      stream.close();
      ++record.ended;
      return;
    }
    std::span<const std::uint8_t> piece;
    for (std::uint32_t i = 0; stream.read(piece); ++i)
      EXPECT_TRUE(std::ranges::equal(piece, PieceWriter::piece(seed, i, writer.longest))) << "call " << call;
    const CallResult& result = stream.wait();
    if (result.status == MessageStatus::ok && result.code == 2) {
      EXPECT_TRUE(
          std::ranges::equal(std::span(result.data, result.length), std::span(record.request).first(sizeof(Ask))));
    }
    ++record.ended;
  }

  StressRun& run_;
  AskingHost& client_;
  std::uint32_t first_;
  Random random_;
  std::uint32_t queued_ = 0;  ///< ends that are to come by the queue of completions
};

class MixedStress : public testing::TestWithParam<ServerKind> {};

TEST_P(MixedStress, EveryCallEndsOnceAndIsHandledOnceAtMost) {
  StressRun run;
  const auto wait_for = [&](std::uint32_t thirds) {
    const std::uint32_t wanted = kAskers * kCallsAThread / 3 * thirds;
    for (std::uint32_t begun = run.begun; begun < wanted; begun = run.begun) run.begun.wait(begun);
  };
  auto server = std::make_unique<AskedHosts>(run, GetParam(), 0);
  const std::uint16_t port = server->port();
  std::array<std::unique_ptr<AskingHost>, kAskingHosts> clients;
  for (auto& client : clients) client = std::make_unique<AskingHost>(port);
  std::vector<std::thread> askers;
  for (std::uint32_t i = 0; i < kAskers; ++i)
    askers.emplace_back([&, i] { Asker(run, *clients[i / kThreadsAClient], i).ask_all(); });
  wait_for(1);
  server->drain();
  for (const std::uint32_t thirds : {1U, 2U}) {
    wait_for(thirds);
    server.reset();  // in peace, the first time, or amidst
    server = std::make_unique<AskedHosts>(run, GetParam(), port);
  }
  for (std::thread& asker : askers) asker.join();

  // One client ends with all that it has under way, the other waits for its ends.
  clients[0].reset();
  for (std::size_t call = kThreadsAClient * kCallsAThread; call < run.records.size(); ++call) {
    while (run.records[call].accepted && run.records[call].ended == 0) std::this_thread::yield();
  }
  clients[1].reset();
  server.reset();

  std::array<std::uint32_t, 6> ends{};
  for (std::size_t call = 0; call < run.records.size(); ++call) {
    const CallRecord& record = run.records[call];
    EXPECT_EQ(record.ended, record.accepted ? 1U : 0U) << "call " << call;
    ++ends[static_cast<std::size_t>(record.status)];
    if (record.status == MessageStatus::ok && !record.room.empty()) {
      EXPECT_EQ(record.answered, 1U) << "call " << call;
    }
  }
  for (const MessageStatus status : {MessageStatus::ok, MessageStatus::refused, MessageStatus::deadline,
                                     MessageStatus::cancelled, MessageStatus::peer_lost})
    EXPECT_GT(ends[static_cast<std::size_t>(status)], 0U) << message::name(status);
  EXPECT_GT(run.gate.passed(), 0U);
}

std::string name_of_kind(const testing::TestParamInfo<ServerKind>& each) {
  constexpr const char* kNames[] = {"ByItsLoop", "OnThreads", "ByTwoEndpoints", "OnThreadsOfTwoEndpoints"};
  return kNames[static_cast<std::size_t>(each.param)];
}

INSTANTIATE_TEST_SUITE_P(Servers, MixedStress,
                         testing::Values(ServerKind::by_its_loop, ServerKind::on_threads, ServerKind::by_two_endpoints,
                                         ServerKind::on_threads_of_two_endpoints),
                         name_of_kind);

}  // namespace
}  // namespace warpline::rpc
