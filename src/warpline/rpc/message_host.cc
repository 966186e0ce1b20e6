// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/message_host.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/base/units.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/in_loop.h"
#include "warpline/rpc/outstanding_calls.h"
#include "warpline/transport/loop_descriptor.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {
namespace {

constexpr int kStepsATurn = 16;
constexpr Nanos kPollFor{50'000};  ///< over transports that only poll: to give way costs a system call
constexpr std::uint32_t kStreamWindowsASession = 16;       ///< in receive_window, half of them for streams
constexpr std::uint32_t kLongestStreamWindow = 64U << 20;  ///< of which there are so many in the longest receive_window
constexpr std::size_t kEventsAStep = 32;
constexpr std::uint64_t kAnswerBytes = 64U << 20;  ///< of address space for answers, unless one is longer

/// Where a handler writes its answers. An answer that the endpoint has no memory to copy leaves from here.
class Answers {
 public:
  explicit Answers(std::uint32_t bytes)
      : bytes_(bytes),
        count_(std::clamp<std::size_t>(kAnswerBytes / std::max(bytes, 1U), 1, kEventsAStep)),
        memory_(std::make_unique_for_overwrite<std::uint8_t[]>(count_ * bytes)),
        leaving_(count_) {
    for (std::uint32_t i = 0; i < count_; ++i) free_.push_back(static_cast<std::uint32_t>(count_ - 1 - i));
  }

  /// Requests that may be handled: each may need a buffer to itself.
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  /// The next free buffer, always the same until one leaves.
  [[nodiscard]] std::uint32_t next() const { return free_.back(); }
  [[nodiscard]] std::span<std::uint8_t> at(std::uint32_t index) { return {memory_.get() + index * bytes_, bytes_}; }
  /// next() is read until the answer to this request has been sent.
  void leave(const message::MessageId& request) {
    leaving_[free_.back()] = request;
    free_.pop_back();
  }
  /// False if the event is not of an answer that leaves from here.
  bool sent(const message::MessageEvent& event) {
    if (event.context >= count_ || leaving_[event.context] != event.id || free_.size() == count_) return false;
    leaving_[event.context] = {};
    free_.push_back(static_cast<std::uint32_t>(event.context));
    return true;
  }

 private:
  std::size_t bytes_;
  std::size_t count_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::vector<message::MessageId> leaving_;
  std::vector<std::uint32_t> free_;
};

std::string hint(message::LossReason reason) {
  switch (reason) {
    case message::LossReason::peer_full:
      return "the server has no room for a session: raise its EndpointConfig::max_sessions, or close sessions";
    case message::LossReason::not_accepted:
      return "see whether the server accepts sessions, and whether both ends have the same keys";
    case message::LossReason::wrong_version:
      return "use the same version of the protocol at both ends";
    case message::LossReason::going_away:
      return "the server is going away: ask another one";
    case message::LossReason::closed_here:
      return "open a session, or reconnect() this one";
    default:
      return "see whether the server runs and is reached";
  }
}

}  // namespace

/// What stays where it is when the host is moved.
struct MessageHost::Loop {
  Loop(transport::Transport& carrier, std::unique_ptr<transport::WakeUp> waker, message::Endpoint core,
       const transport::NanoClock& time, std::unique_ptr<CallStreams> pieces, const Settings& settings)
      : transport(carrier),
        wake(std::move(waker)),
        clock(time),
        poll_for(settings.poll_for.value_or(transport.descriptor() < 0 ? kPollFor : Nanos{0})),
        endpoint(std::move(core)),
        answer_bytes(settings.answer_bytes),
        queue(settings.calls, *wake),
        calls(queue),
        streams(std::move(pieces)) {
    transport.wake_by(wake->descriptor());
  }

  ~Loop() {
    Loop* const itself = this;
    end_threads({&itself, 1}, false);
    if (!transport.failed()) close_sessions();
    transport.wake_by(-1);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  bool step();
  bool work();
  static void end_threads(std::span<Loop* const> loops, bool with_parts);
  void end_calls();
  void end_part(LoopPart& part);
  [[nodiscard]] bool threads_ended() const;
  static void sleep_until_woken(std::span<Loop* const> loops);
  void close_sessions();
  void note(const message::MessageEvent& event);
  [[nodiscard]] message::LossReason loss(message::SessionId session) const;
  [[nodiscard]] std::size_t request_room() const;
  void take(const message::MessageEvent& event, Nanos now);
  void answer(const message::MessageEvent& request);
  /// Who takes requests in the place of a handler, or null.
  [[nodiscard]] LoopPart* taker() const;
  void sleep();
  [[nodiscard]] Nanos next_deadline() const;

  std::unique_ptr<transport::UdpSocket> socket;  ///< of open()
  transport::Transport& transport;
  std::unique_ptr<transport::WakeUp> wake;
  transport::NanoClock clock;
  Nanos poll_for;
  message::Endpoint endpoint;
  std::uint32_t answer_bytes;
  CallQueue queue;
  OutstandingCalls calls;
  std::unique_ptr<CallStreams> streams;  ///< null: there are to be none
  std::unique_ptr<CallStreamThreads> stream_threads;
  /// A session that connect() opened.
  struct OpenedHere {
    message::SessionId id;
    message::LossReason loss = message::LossReason::none;
  };
  std::vector<OpenedHere> opened;  ///< by SessionId::index
  Handler handler;
  std::unique_ptr<Answers> answers;  ///< of the handler
  Listener listener;
  CallObserver* observer = nullptr;
  std::vector<LoopPart*> parts;
  std::unique_ptr<HandlerThreads> threads;
  std::unique_ptr<transport::LoopDescriptor> descriptor;
  bool moved = false;                     ///< something came, ended or left in the step before
  std::optional<Handler> next_handler;    ///< takes the place of `handler` after the step
  std::optional<Listener> next_listener;  ///< likewise
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> drain_within{-1};  ///< nanoseconds; -1: not asked, or done
};

/// Does what there is to do, once. Returns whether there was anything. Not in a callback of its own.
bool MessageHost::Loop::step() {
  const bool worked = [this] {
    const InLoop inside(*wake);
    return work();
  }();
  if (next_handler) handler = *std::exchange(next_handler, std::nullopt);
  if (next_listener) listener = *std::exchange(next_listener, std::nullopt);
  std::erase(parts, nullptr);
  return worked;
}

bool MessageHost::Loop::work() {
  const Nanos now = clock.now();
  if (drain_within.load(std::memory_order_relaxed) >= 0) [[unlikely]]
    endpoint.drain(time_sum(now, Nanos{drain_within.exchange(-1, std::memory_order_relaxed)}), now);
  const bool came = transport::receive_into(endpoint, transport, now);
  std::array<message::MessageEvent, kEventsAStep> events;
  std::size_t count = 0;
  if (transport.settled())
    count = threads ? threads->poll(endpoint, events, now) : endpoint.poll(events, request_room());
  const Nanos seen = observer == nullptr ? now : clock.now();
  for (const message::MessageEvent& event : std::span(events).first(count)) take(event, seen);
  const Nanos later = clock.now();
  const bool may_have_room = moved || came || count != 0;
  bool ordered = calls.advance(endpoint, may_have_room, later);
  if (stream_threads) stream_threads->advance();
  if (streams) ordered = streams->advance(endpoint, may_have_room, later) || ordered;
  for (std::size_t i = 0; i < parts.size(); ++i)  // a callback may have one join or leave
    ordered = (parts[i] != nullptr && parts[i]->advance(endpoint, may_have_room, later)) || ordered;
  const std::size_t sent = transport::transmit_from(endpoint, transport, clock);
  moved = came || count != 0 || sent != 0;
  return moved || ordered;
}

void MessageHost::Loop::take(const message::MessageEvent& event, Nanos now) {
  if (event.kind == message::EventKind::request) {
    LoopPart* const part = taker();
    if (part == nullptr || !part->handle(endpoint, event, now)) answer(event);
  } else if (event.kind == message::EventKind::sent && answers && answers->sent(event)) {
    return;
  } else if (!calls.handle(endpoint, event, now) && !(streams && streams->handle(endpoint, event, now))) {
    note(event);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] != nullptr && parts[i]->handle(endpoint, event, now)) return;
    }
    if (listener) listener(event);
    if (event.kind == message::EventKind::message) (void)endpoint.release(event.id, clock.now());
  }
}

LoopPart* MessageHost::Loop::taker() const {
  if (handler) return nullptr;
  const auto takes = std::ranges::find_if(
      parts, [](const LoopPart* part) { return part != nullptr && part->request_room().has_value(); });
  return takes == parts.end() ? nullptr : *takes;
}

void MessageHost::Loop::answer(const message::MessageEvent& request) {
  const ObservedRequest observed{request.session, request.code, request.length};
  const Nanos began = observer == nullptr ? Nanos{} : clock.now();
  if (observer != nullptr) observer->request_began(observed);
  std::optional<std::size_t> length;
  std::span<std::uint8_t> room;
  if (handler) {
    room = answers->at(answers->next());
    length = handler({request.data, request.length}, room);
  }
  const Nanos now = clock.now();
  const bool fits = length && *length <= room.size();
  const std::uint32_t bytes = fits ? static_cast<std::uint32_t>(*length) : 0;
  message::CallStatus status = length ? message::CallStatus::too_long : message::CallStatus::not_allowed;
  if (fits) {
    // Copied, since the room is used again before it has left. What there is no memory for leaves from the room.
    status = endpoint.respond(request.id, {room.data(), bytes}, {.copy = true}, now);
    if (status == message::CallStatus::no_memory) {
      status = endpoint.respond(request.id, {room.data(), bytes}, {.context = answers->next()}, now);
      if (status == message::CallStatus::ok) answers->leave(request.id);
    }
  }
  if (status != message::CallStatus::ok) (void)endpoint.release(request.id, now);
  if (observer != nullptr)
    observer->request_ended(observed, observed_answer(status, 0, bytes, {now.value - began.value}));
}

Nanos MessageHost::Loop::next_deadline() const {
  Nanos next = std::min(endpoint.next_deadline(), calls.next_deadline());
  if (streams) next = std::min(next, streams->next_deadline());
  for (const LoopPart* const part : parts) {
    if (part != nullptr) next = std::min(next, part->next_deadline());
  }
  return next;
}

/// Sleeps until there is something to do.
void MessageHost::Loop::sleep() {
  const Nanos until = next_deadline();
  if (transport.descriptor() < 0) {  // it polls, and nobody needs to wake it
    transport.wait(clock.now(), until);
  } else if (wake->begin_sleep()) {
    transport.wait(clock.now(), until);
    wake->end_sleep();
  }
}

/// Ends handlers on threads, which may wait for calls of all these hosts, and with `with_parts` of their parts, and
/// make others until they return.
void MessageHost::Loop::end_threads(std::span<Loop* const> loops, bool with_parts) {
  const auto end_all_calls = [&] {
    for (Loop* const loop : loops) {
      loop->end_calls();
      for (std::size_t i = 0; with_parts && i < loop->parts.size(); ++i) {
        if (loop->parts[i] != nullptr) loop->end_part(*loop->parts[i]);
      }
    }
  };
  for (Loop* const loop : loops) {
    if (loop->threads) loop->threads->stop();
    if (loop->stream_threads) loop->stream_threads->stop();
  }
  const auto ended = [](const Loop* loop) { return loop->threads_ended(); };
  for (end_all_calls(); !std::ranges::all_of(loops, ended); end_all_calls()) sleep_until_woken(loops);
  for (Loop* const loop : loops) {
    loop->threads.reset();
    loop->stream_threads.reset();
  }
  end_all_calls();
}

/// Ends all calls and streams, and those that are made meanwhile.
void MessageHost::Loop::end_calls() {
  const InLoop inside(*wake);
  calls.end_all(endpoint, clock.now());
  if (streams) streams->end_all(endpoint, clock.now());
}

/// Ends what the part has with the endpoint.
void MessageHost::Loop::end_part(LoopPart& part) {
  const InLoop inside(*wake);
  part.leave(endpoint, clock.now());
  std::array<message::MessageEvent, kEventsAStep> events;
  for (std::size_t count = 1; count != 0;) {
    count = endpoint.poll(events, 0);
    for (const message::MessageEvent& event : std::span(events).first(count)) take(event, clock.now());
  }
  part.end_rest(clock.now());
}

bool MessageHost::Loop::threads_ended() const {
  return (!threads || threads->ended()) && (!stream_threads || stream_threads->ended());
}

/// A thread that makes a call, or ends, wakes one of them.
void MessageHost::Loop::sleep_until_woken(std::span<Loop* const> loops) {
  std::vector<pollfd> watched;
  bool woken = false;
  for (Loop* const loop : loops) {
    woken = !loop->wake->begin_sleep() || woken;
    watched.push_back({loop->wake->descriptor(), POLLIN, 0});
  }
  if (!woken) (void)::poll(watched.data(), watched.size(), -1);
  for (Loop* const loop : loops) loop->wake->end_sleep();
}

/// Tells servers that the sessions that were opened here are over: they need not find out by silence.
void MessageHost::Loop::close_sessions() {
  constexpr std::size_t kAtOnce = 64;  // an endpoint has room for so many goodbyes, and more
  std::size_t closed = 0;
  for (const OpenedHere& session : opened) {
    if (endpoint.close(session.id, clock.now()) != message::CallStatus::ok) continue;
    if (++closed % kAtOnce == 0) (void)transport::transmit_from(endpoint, transport, clock);
  }
  if (closed != 0) (void)transport::transmit_from(endpoint, transport, clock);
}

/// Notes what became of sessions that were opened here.
void MessageHost::Loop::note(const message::MessageEvent& event) {
  const bool ends = event.kind == message::EventKind::lost;
  if ((!ends && event.kind != message::EventKind::connected) || event.session.index >= opened.size()) return;
  OpenedHere& session = opened[event.session.index];
  if (session.id == event.session) session.loss = ends ? event.reason : message::LossReason::none;
}

message::LossReason MessageHost::Loop::loss(message::SessionId session) const {
  const bool known = session.index < opened.size() && opened[session.index].id == session;
  return known ? opened[session.index].loss : message::LossReason::none;
}

/// Requests that the next poll may hand out.
std::size_t MessageHost::Loop::request_room() const {
  if (handler) return answers->free();
  const LoopPart* const part = taker();
  return part == nullptr ? kEventsAStep : part->request_room().value_or(0);
}

MessageHost::MessageHost(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
MessageHost::MessageHost(MessageHost&&) noexcept = default;
MessageHost::~MessageHost() = default;

Result<MessageHost> MessageHost::open(const Settings& settings) {
  WARPLINE_TRY(auto socket, transport::UdpSocket::open(
                                {.local = settings.local, .datagram_bytes = settings.endpoint.datagram_bytes}));
  WARPLINE_TRY(MessageHost host, over(*socket, settings));
  host.loop_->socket = std::move(socket);
  return host;
}

Result<MessageHost> MessageHost::over(transport::Transport& transport, const Settings& settings) {
  WARPLINE_CHECK(check_calls("MessageHost::Settings::calls", settings.calls));
  const transport::NanoClock clock;
  WARPLINE_TRY(auto wake, transport::WakeUp::make());
  message::EndpointConfig config = settings.endpoint;
  config.max_queued = std::max(config.max_queued, settings.calls);
  config.max_messages = std::max(config.max_messages, 2 * settings.calls);
  config.streams = settings.streams.streams != 0;
  if (config.streams && settings.streams.window <= kLongestStreamWindow) {
    config.receive_window = std::max(config.receive_window, kStreamWindowsASession * settings.streams.window);
    config.receive_bytes += settings.streams.most_bytes();
    const std::uint64_t messages = config.max_messages + settings.streams.most_pieces();
    config.max_messages = static_cast<std::uint32_t>(std::min<std::uint64_t>(messages, 1U << 30));
  }
  std::unique_ptr<CallStreams> streams;
  if (config.streams) {
    WARPLINE_TRY(streams, CallStreams::make(settings.streams, config, wake.get()));
  }
  WARPLINE_TRY(message::Endpoint endpoint, message::Endpoint::create(config, clock.now()));
  return MessageHost(
      std::make_unique<Loop>(transport, std::move(wake), std::move(endpoint), clock, std::move(streams), settings));
}

void MessageHost::handle(Handler handler) {
  if (!loop_->answers) loop_->answers = std::make_unique<Answers>(loop_->answer_bytes);
  if (in_callback()) {
    loop_->next_handler = std::move(handler);  // the one that calls this may be the one before
  } else {
    loop_->handler = std::move(handler);
  }
}

Result<void> MessageHost::handle_on_threads(HandlerThreadsSetup setup, HandlerThreads::Handler handler) {
  setup.wake = loop_->wake.get();
  setup.observer = loop_->observer;
  WARPLINE_TRY(loop_->threads, HandlerThreads::start(setup, std::move(handler)));
  return {};
}

Result<void> MessageHost::take_streams(CallStreams::Taker taker) {
  if (!loop_->streams)
    return usage_error("taking calls in pieces", "there are to be none", "set MessageHost::Settings::streams");
  loop_->streams->take_by(std::move(taker));
  return {};
}

Result<void> MessageHost::take_streams_on_threads(unsigned threads, CallStreamThreads::Handler handler) {
  WARPLINE_TRY(auto started, CallStreamThreads::start(threads, std::move(handler), *loop_->wake));
  const Result<void> takes = take_streams([to = started.get()](CallStream stream) { to->take(std::move(stream)); });
  if (takes) loop_->stream_threads = std::move(started);
  return takes;
}

OpenedStream MessageHost::open_stream(const StreamCall& call) {
  return loop_->streams ? loop_->streams->open(call, now()) : OpenedStream{message::CallStatus::not_allowed, {}};
}

const CallStreamCounters* MessageHost::stream_counters() const {
  return loop_->streams ? &loop_->streams->counters() : nullptr;
}

void MessageHost::listen(Listener listener) {
  if (in_callback()) {
    loop_->next_listener = std::move(listener);
  } else {
    loop_->listener = std::move(listener);
  }
}

void MessageHost::end_handlers(std::span<MessageHost* const> hosts) { end_handlers(hosts, true); }

void MessageHost::end_handlers(std::span<MessageHost* const> hosts, bool with_parts) {
  std::vector<Loop*> loops;
  for (const MessageHost* const host : hosts) loops.push_back(host->loop_.get());
  Loop::end_threads(loops, with_parts);
}

bool MessageHost::in_callback() const { return InLoop::of(*loop_->wake); }

void MessageHost::observe(CallObserver* observer) {
  loop_->observer = observer;
  loop_->calls.observe(observer);
  if (loop_->streams) loop_->streams->observe(observer);
}

void MessageHost::run() {
  Loop& loop = *loop_;
  if (in_callback()) return;  // the loop that called back goes on
  std::optional<Nanos> idle_since;
  while (!loop.stop.load(std::memory_order_relaxed) && !loop.transport.failed() && !loop.endpoint.drained()) {
    if (loop.step()) {
      idle_since.reset();
      continue;
    }
    const Nanos now = loop.clock.now();
    if (!idle_since) idle_since = now;
    const bool over = loop.endpoint.drained();  // since the step, in which nothing else was done
    if (!over && now.value - idle_since->value >= loop.poll_for.value) loop.sleep();
  }
}

void MessageHost::serve(Handler handler) {
  handle(std::move(handler));
  run();
}

Result<int> MessageHost::descriptor() {
  Loop& loop = *loop_;
  if (loop.transport.descriptor() < 0)
    return usage_error("descriptor of a MessageHost", "its transport only polls", "call turn() again and again");
  if (!loop.descriptor) {
    WARPLINE_TRY(loop.descriptor,
                 transport::LoopDescriptor::make(loop.transport.descriptor(), loop.wake->descriptor()));
  }
  return loop.descriptor->get();
}

bool MessageHost::turn() {
  Loop& loop = *loop_;
  if (in_callback()) return !loop.transport.failed();
  if (loop.descriptor) loop.wake->end_sleep();
  bool worked = true;
  for (int i = 0; worked && i < kStepsATurn; ++i) worked = loop.step();
  if (loop.descriptor) {
    const bool rests = loop.wake->begin_sleep() && !worked && !loop.transport.restless();
    const Nanos now = loop.clock.now();
    loop.descriptor->arm(now, rests ? loop.transport.rest_until(now, loop.next_deadline()) : now,
                         loop.transport.blocked());
  }
  return !loop.transport.failed();
}

Result<message::SessionId> MessageHost::connect(const SocketAddress& server) {
  const message::Opened opened = loop_->endpoint.connect(message::peer_address(server), {}, now());
  if (opened.status == message::CallStatus::ok) {
    std::vector<Loop::OpenedHere>& known = loop_->opened;
    if (known.size() <= opened.session.index) known.resize(std::size_t{opened.session.index} + 1);
    known[opened.session.index] = {opened.session};
    return opened.session;
  }
  return usage_error(fmt::format("session with {}", to_string(server)), std::string(message::name(opened.status)),
                     "raise EndpointConfig::max_sessions");
}

Result<std::string> MessageHost::ask(message::SessionId session, std::string_view request, Nanos patience) {
  Loop& loop = *loop_;
  if (in_callback()) {
    return usage_error("ask() in a callback of its own host", "other requests would be handled inside of this one",
                       "submit() the call there, or take requests by handle_on_threads() and wait for a PendingCall");
  }
  std::string answer(loop.answer_bytes, '\0');
  std::optional<CallResult> ended;
  Call call{.session = session, .patience = patience};
  call.message = {reinterpret_cast<const std::uint8_t*>(request.data()), static_cast<std::uint32_t>(request.size())};
  call.response = {reinterpret_cast<std::uint8_t*>(answer.data()), static_cast<std::uint32_t>(answer.size())};
  const auto done = [](void* context, std::uint64_t, const CallResult& result) {
    *static_cast<std::optional<CallResult>*>(context) = result;
  };
  const SubmittedCall asked = submit(call, {done, &ended, 0});
  if (asked.status != message::CallStatus::ok) {
    return usage_error("request", std::string(message::name(asked.status)), "see MessageHost::Settings::calls");
  }
  // Its own deadline ends it, unless the transport has failed: then there are no events any more.
  while (!ended && !loop.transport.failed()) {
    if (!loop.step()) loop.sleep();
  }
  if (!ended) {
    loop.calls.end_all(loop.endpoint, now());
    return environment_error("request", "the transport has failed", "open another one");
  }
  if (ended->status == message::MessageStatus::ok) {
    answer.resize(ended->length);
    return answer;
  }
  std::string why(message::name(ended->status));
  message::LossReason reason = message::LossReason::none;
  if (ended->status == message::MessageStatus::peer_lost) {
    // The event that says why the session ended comes after those of its calls.
    for (int i = 0; i < kStepsATurn && (reason = loop.loss(session)) == message::LossReason::none; ++i)
      (void)loop.step();
    if (reason != message::LossReason::none) why += fmt::format(": {}", message::name(reason));
  }
  return Error{ErrorKind::peer, "request", std::move(why), hint(reason)};
}

message::Endpoint& MessageHost::endpoint() { return loop_->endpoint; }

void MessageHost::join(LoopPart& part) { loop_->parts.push_back(&part); }

void MessageHost::leave(LoopPart& part) {
  Loop& loop = *loop_;
  loop.end_part(part);
  if (in_callback()) {
    std::ranges::replace(loop.parts, &part, nullptr);
  } else {
    std::erase(loop.parts, &part);
  }
  // What it had to tell servers, such as that it is gone, leaves now.
  if (!loop.transport.failed()) (void)transport::transmit_from(loop.endpoint, loop.transport, loop.clock);
}

transport::WakeUp& MessageHost::wake_up() { return *loop_->wake; }

void MessageHost::stop() {
  loop_->stop.store(true, std::memory_order_relaxed);
  loop_->wake->wake();
}

void MessageHost::drain(Nanos patience) {
  loop_->drain_within.store(std::max<std::int64_t>(patience.value, 0), std::memory_order_relaxed);
  loop_->wake->wake();
}

SubmittedCall MessageHost::submit(const Call& call, const CallDone& done) {
  return loop_->queue.submit(call, done, now());
}

bool MessageHost::cancel(CallId id) { return loop_->queue.cancel(id); }

bool MessageHost::post(void (*task)(void* context), void* context) { return loop_->queue.post(task, context); }

Nanos MessageHost::now() const { return loop_->clock.now(); }

std::uint16_t MessageHost::port() const { return loop_->socket ? loop_->socket->port() : std::uint16_t{0}; }

}  // namespace warpline::rpc
