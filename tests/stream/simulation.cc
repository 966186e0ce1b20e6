// SPDX-License-Identifier: Apache-2.0
#include "simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "sim/chance.h"
#include "sim/event_queue.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/packet/parse.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream/stream_sender.h"

namespace warpline::stream {
namespace {

using sim::between;
using sim::chance;
using Bytes = std::vector<std::uint8_t>;

constexpr MacAddress kSenderMac{{2, 0, 0, 0, 0, 2}};
constexpr MacAddress kReceiverMac{{2, 0, 0, 0, 0, 1}};
constexpr Ipv4Address kSenderAddress{{10, 0, 0, 2}};
constexpr Ipv4Address kReceiverAddress{{10, 0, 0, 1}};
constexpr std::uint16_t kListen = 5001;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLongest = 100'000 * kSecond;  ///< of a run
constexpr std::uint64_t kMostTurns = 4'000'000;

/// A host that does its work in turns, and sleeps when there is none.
class Host : public sim::Actor {
 public:
  Host(sim::EventQueue& events, const HostHabits& habits, std::uint64_t seed)
      : events_(events), habits_(habits), random_(seed) {}
  virtual ~Host() = default;

  void arrive(Bytes frame) {
    inbox_.push_back(std::move(frame));
    wake(events_.now());
  }
  void wake(std::int64_t time) {
    time = std::max(time, free_at_);
    if (pending_ && *pending_ <= time) return;
    pending_ = time;
    events_.at(time, *this, static_cast<std::uint64_t>(time));
  }
  void act(std::uint64_t what) final {
    if (!pending_ || *pending_ != static_cast<std::int64_t>(what)) return;  // woken earlier
    pending_.reset();
    ++turns_;
    const std::int64_t now = events_.now();
    free_at_ = now + habits_.turn;
    if (chance(random_, habits_.pause)) free_at_ += between(random_, 0, habits_.pause_time);
    turn(Nanos{now});
  }
  [[nodiscard]] std::uint64_t turns() const { return turns_; }

 protected:
  virtual void turn(Nanos now) = 0;

  template <typename F>
  void take_frames(F&& take) {
    for (std::uint32_t i = 0; i < habits_.burst && !inbox_.empty(); ++i) {
      Segment segment{inbox_.front().data(), static_cast<std::uint32_t>(inbox_.front().size()), 0, Verdict::forward};
      take(frame_at(&segment));
      inbox_.pop_front();
    }
    if (!inbox_.empty()) wake(events_.now());
  }
  /// Moves the oldest frame to who lends it on; none if there is none.
  [[nodiscard]] std::optional<Bytes> next_frame() {
    if (inbox_.empty()) return std::nullopt;
    Bytes frame = std::move(inbox_.front());
    inbox_.pop_front();
    return frame;
  }
  [[nodiscard]] bool has_frames() const { return !inbox_.empty(); }
  void wake_for(Nanos deadline, Nanos now) {
    if (deadline.value != std::numeric_limits<std::int64_t>::max()) wake(std::max(deadline.value, now.value + 1));
  }

  sim::EventQueue& events_;
  HostHabits habits_;
  Random random_;

 private:
  std::deque<Bytes> inbox_;
  std::optional<std::int64_t> pending_;
  std::int64_t free_at_ = 0;
  std::uint64_t turns_ = 0;
};

/// One direction.
class Wire final : public sim::Actor {
 public:
  Wire(sim::EventQueue& events, const WireFaults& faults, std::uint64_t seed)
      : events_(events), faults_(faults), random_(seed) {}

  void connect(Host& to) { to_ = &to; }
  void send(std::span<const std::uint8_t> frame) {
    ++frames_;
    if (in_burst_ ? chance(random_, faults_.burst_end) : chance(random_, faults_.burst_begin)) in_burst_ = !in_burst_;
    if (in_burst_ || chance(random_, faults_.loss)) return;
    std::int64_t departure = events_.now();
    if (faults_.bytes_per_second > 0) {
      while (!departures_.empty() && departures_.front() <= events_.now()) departures_.pop_front();
      if (faults_.queue != 0 && departures_.size() >= faults_.queue) return;
      const auto time = static_cast<std::int64_t>(static_cast<double>(frame.size()) / faults_.bytes_per_second * 1e9);
      departure = std::max(departure, departures_.empty() ? 0 : departures_.back()) + time;
      departures_.push_back(departure);
    }
    std::int64_t arrival = departure + faults_.delay + between(random_, 0, faults_.jitter);
    arrival = std::max(arrival, last_arrival_);
    last_arrival_ = arrival;
    Bytes bytes(frame.begin(), frame.end());
    if (chance(random_, faults_.corrupt)) {
      // Not in Ethernet's header, which no checksum but that of the frame covers.
      bytes[14 + random_.below(bytes.size() - 14)] ^= static_cast<std::uint8_t>(1U << random_.below(8));
    }
    if (chance(random_, faults_.duplicate)) deliver(bytes, arrival + between(random_, 0, faults_.lateness));
    if (chance(random_, faults_.reorder)) arrival += between(random_, 0, faults_.lateness);
    deliver(std::move(bytes), arrival);
  }
  void act(std::uint64_t what) override {
    const auto found = under_way_.find(what);
    to_->arrive(std::move(found->second));
    under_way_.erase(found);
  }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  void deliver(Bytes bytes, std::int64_t time) {
    under_way_.emplace(serial_, std::move(bytes));
    events_.at(time, *this, serial_++);
  }

  sim::EventQueue& events_;
  WireFaults faults_;
  Random random_;
  Host* to_ = nullptr;
  bool in_burst_ = false;
  std::int64_t last_arrival_ = 0;
  std::deque<std::int64_t> departures_;
  std::map<std::uint64_t, Bytes> under_way_;
  std::uint64_t serial_ = 0;
  std::uint64_t frames_ = 0;
};

/// What both hosts, and the check at the end, know of a connection.
struct Stream {
  std::uint16_t port = 0;
  std::optional<ConnectionId> id;              ///< of the receiver
  std::optional<SendState> sent_as;            ///< how it ended for the sender
  std::optional<ConnectionState> received_as;  ///< how it ended for the receiver
  std::uint64_t received = 0;
  bool aborted_by_sender = false;
  bool aborted_by_receiver = false;
};

SenderSettings sender_settings_of(const StreamScenario& scenario) {
  SenderSettings settings;
  settings.mac = kSenderMac;
  settings.address = kSenderAddress;
  settings.connections = scenario.connections;
  settings.mtu = scenario.sender_mtu;
  settings.window_bytes = scenario.window;
  settings.congestion = scenario.congestion;
  settings.nagle = scenario.nagle;
  settings.time_wait = Nanos{60 * kSecond};
  // However much is lost: nobody gives up.
  settings.connect_timeout = Nanos{kLongest};
  settings.user_timeout = Nanos{kLongest};
  settings.secret[0] = 1;
  settings.secret[1] = static_cast<std::uint8_t>(scenario.seed);
  settings.secret[2] = static_cast<std::uint8_t>(scenario.seed >> 8);
  return settings;
}

class SendingHost final : public Host, private PayloadSource {
 public:
  SendingHost(sim::EventQueue& events, const StreamScenario& scenario, std::vector<Stream>& streams,
              const SeededPayload& payload, Wire& out, Nanos start)
      : Host(events, scenario.sender, scenario.seed + 1),
        scenario_(scenario),
        streams_(streams),
        payload_(payload),
        out_(out),
        sender_(std::move(StreamSender::create(sender_settings_of(scenario), *this, start)).value()),
        buffer_(sender_.frame_bytes()),
        flows_(scenario.connections) {}

  [[nodiscard]] const StreamSender& sender() const { return sender_; }
  [[nodiscard]] bool idle() const { return opened_ == scenario_.connections && sender_.connections() == 0; }

  void read(ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload_.copy(streams_[flow_of_place_[connection.index]].port, offset, length, to, sum);
  }

 private:
  struct Flow {
    ConnectionId id;
    std::uint64_t offered = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t break_at = 0;
    bool open = false;
    bool closed = false;
  };

  void turn(Nanos now) override {
    take_frames([&](FrameRef frame) { sender_.receive(frame, false, now); });
    if (sender_.next_deadline() <= now) sender_.advance(now);
    open_some(now);
    while (const auto event = sender_.poll()) handle(*event);
    bool more = false;
    for (std::uint32_t i = 0; i < flows_.size(); ++i) more = work(i, now) || more;
    for (std::uint32_t i = 0; i < habits_.burst; ++i) {
      const std::uint32_t length = sender_.next_frame(buffer_, now);
      if (length == 0) break;
      out_.send({buffer_.data(), length});
      if (i + 1 == habits_.burst) more = true;
    }
    if (more || opened_ < scenario_.connections) wake(now.value + between(random_, 1, 1 + habits_.turn));
    wake_for(sender_.next_deadline(), now);
  }

  void open_some(Nanos now) {
    while (opened_ < scenario_.connections && (opened_ == 0 || chance(random_, 0.5))) {
      const auto id = sender_.connect({kReceiverAddress, kListen}, kReceiverMac, now);
      if (!id) return;
      flow_of_place_.resize(scenario_.connections);
      flow_of_place_[id->index] = opened_;
      streams_[opened_].port = sender_.view(*id)->local_port;
      flows_[opened_] = {.id = *id, .break_at = random_.below(scenario_.bytes + 1), .open = true};
      ++opened_;
    }
  }

  void handle(const SendEvent& event) {
    Flow& flow = flows_[flow_of_place_[event.connection.index]];
    flow.acknowledged = event.acknowledged;
    if (event.state <= SendState::open) return;
    streams_[flow_of_place_[event.connection.index]].sent_as = event.state;
    flow.open = false;
  }

  /// Offers what there is to offer. True if more is to be done soon.
  bool work(std::uint32_t i, Nanos now) {
    Flow& flow = flows_[i];
    if (!flow.open) return false;
    if (i == 0 && scenario_.breaker == Breaker::sender && flow.acknowledged >= flow.break_at) {
      streams_[0].aborted_by_sender = true;
      sender_.abort(flow.id, now);
      flow.open = false;
      return true;
    }
    if (flow.closed) return false;
    if (flow.offered == scenario_.bytes) {
      sender_.close(flow.id);
      flow.closed = true;
      return false;
    }
    std::uint64_t piece = scenario_.bytes - flow.offered;
    if (scenario_.chunk != 0) {
      if (flow.acknowledged != flow.offered) return false;
      piece = std::min(piece, scenario_.chunk);
    } else if (chance(random_, habits_.in_parts)) {
      piece = 1 + random_.below(std::min<std::uint64_t>(piece, 5000));
    }
    sender_.offer(flow.id, piece);
    flow.offered += piece;
    return true;
  }

  const StreamScenario& scenario_;
  std::vector<Stream>& streams_;
  const SeededPayload& payload_;
  Wire& out_;
  StreamSender sender_;
  Bytes buffer_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> flow_of_place_;
  std::uint32_t opened_ = 0;
};

class ReceivingHost final : public Host {
 public:
  ReceivingHost(sim::EventQueue& events, const StreamScenario& scenario, std::vector<Stream>& streams,
                const SeededPayload& payload, Wire& out, std::vector<std::string>& failures, Nanos start)
      : Host(events, scenario.receiver, scenario.seed + 2),
        scenario_(scenario),
        streams_(streams),
        payload_(payload),
        out_(out),
        failures_(failures),
        receiver_(make_receiver(start)) {
    break_at_ = random_.below(scenario.bytes + 1);
  }

  [[nodiscard]] const StreamReceiver& receiver() const { return receiver_; }
  [[nodiscard]] bool idle() const { return receiver_.connections() == 0; }
  /// Ends the lane, if there is one. False if a frame that was lent did not come back.
  [[nodiscard]] bool stop_lane() {
    if (lane_ == nullptr) return true;
    while (receiver_.in_flight() != 0) {
      receiver_.end_burst(Nanos{events_.now()});
      lane_->stop({});
      send_posted();
      (void)receiver_.collect(nullptr, Nanos{events_.now()});
    }
    take_back();
    return lent_.empty();
  }

 private:
  static ReceiverSettings settings_of(const StreamScenario& scenario) {
    ReceiverSettings settings;
    settings.mac = kReceiverMac;
    settings.address = kReceiverAddress;
    settings.ports = {kListen};
    settings.connections = 2 * scenario.connections;
    settings.half_open = scenario.half_open;
    settings.ring_bytes = scenario.ring;
    settings.mtu = scenario.receiver_mtu;
    settings.secret[0] = 5;
    settings.retransmissions = 255;  // eight hours: however much is lost, nobody gives up
    settings.keepalive_idle = Nanos{600 * kSecond};
    settings.keepalive_probes = 250;
    settings.lane_acknowledges = scenario.lane && scenario.lane_acknowledges;
    return settings;
  }

  StreamReceiver make_receiver(Nanos start) {
    const ReceiverSettings settings = settings_of(scenario_);
    if (!scenario_.lane) return std::move(StreamReceiver::create(settings, start)).value();
    // Small, so that bursts are full and all of them in flight. A round takes as many slots less those that the last
    // frame's further pieces may have: 17.
    const LaneShape shape =
        scenario_.lane_queues ? lane_shape(settings, 2 * kMaxSegments, 4, 64) : lane_shape(settings, kMaxSegments, 4);
    auto lane = std::move(testing::StepLane::create(shape)).value();
    lane_ = lane.get();
    return std::move(StreamReceiver::create(settings, start, std::move(lane))).value();
  }

  void take_back() {
    std::array<void*, 64> tokens;
    while (const std::uint32_t count = receiver_.take_back(tokens)) {
      for (std::uint32_t i = 0; i < count; ++i) take_back(tokens[i]);
    }
  }
  void take_back(void* token) {
    std::erase_if(lent_, [token](const Bytes& frame) { return &frame == token; });
  }
  void send_posted() {
    std::array<PostedFrame, 8> posted;
    while (const std::uint32_t count = receiver_.has_queues() ? receiver_.take_posted(posted) : 0) {
      for (std::uint32_t i = 0; i < count; ++i) {
        out_.send({static_cast<const Bytes*>(posted[i].token)->data(), posted[i].length});
        take_back(posted[i].token);
      }
    }
  }

  /// Lends frames to the lane, which takes some of the bursts in flight.
  void take_frames_by_lane(Nanos now) {
    send_posted();
    (void)receiver_.collect(nullptr, now);
    take_back();
    for (std::uint32_t i = 0; i < habits_.burst && receiver_.room() != 0; ++i) {
      auto frame = next_frame();
      if (!frame) break;
      Bytes& bytes = lent_.emplace_back(std::move(*frame));
      Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
      const bool has_room = chance(random_, 0.9);
      if (has_room) bytes.resize(std::max<std::size_t>(bytes.size(), StreamReceiver::kReplyBytes));
      segment.data = bytes.data();
      receiver_.give(frame_at(&segment), false, &bytes, has_room);
    }
    receiver_.end_burst(now);
    while (chance(random_, scenario_.lane_pace) && lane_->step()) {
    }
    if (has_frames() || receiver_.in_flight() != 0) wake(now.value + between(random_, 1, 1 + habits_.turn));
  }

  void turn(Nanos now) override {
    if (lane_ != nullptr) {
      take_frames_by_lane(now);
    } else {
      take_frames([&](FrameRef frame) { receiver_.receive(frame, false, now); });
      receiver_.end_burst(now);
    }
    if (receiver_.next_deadline() <= now) receiver_.advance(now);
    while (const auto event = receiver_.poll()) waiting_.push_back(event->connection);
    bool more = false;
    std::vector<ConnectionId> still;
    for (const ConnectionId id : waiting_) {
      if (consume(id, now)) {
        still.push_back(id);
        more = true;
      }
    }
    waiting_ = std::move(still);
    std::uint8_t bytes[StreamReceiver::kReplyBytes];
    while (const std::uint32_t length = receiver_.next_reply(bytes, now)) out_.send({bytes, length});
    if (more) wake(now.value + between(random_, 1, 1 + 10 * habits_.turn));
    wake_for(receiver_.next_deadline(), now);
  }

  /// Checks and releases what has come, or a part of it. True if something is left to be done.
  bool consume(ConnectionId id, Nanos now) {
    const auto view = receiver_.view(id);
    if (!view) return false;
    const auto found =
        std::ranges::find_if(streams_, [&](const Stream& stream) { return stream.port == view->peer.port; });
    if (found == streams_.end()) {
      failures_.push_back(fmt::format("a connection from port {}, which nobody opened", view->peer.port));
      return false;
    }
    Stream& stream = *found;
    if (!stream.id) stream.id = id;
    if (stream.id != id) return consume_echo(id, *view, now);
    std::uint64_t length = view->bytes.size();
    if (length != 0 && chance(random_, habits_.in_parts)) length = random_.below(length + 1);
    if (view->begin != stream.received) failures_.push_back("bytes are missing or come twice");
    if (payload_.matching(stream.port, view->begin, view->bytes.subspan(0, length)) != length) {
      failures_.push_back(fmt::format("wrong bytes behind {} of port {}", view->begin, stream.port));
    }
    const bool all = length == view->bytes.size();
    stream.received += length;
    receiver_.release(id, length);
    const bool first = &stream == streams_.data();
    if (first && scenario_.breaker == Breaker::receiver && stream.received >= break_at_ && !stream.received_as) {
      stream.aborted_by_receiver = true;
      receiver_.abort(id, now);
      return false;
    }
    if (!all) return true;
    if (view->state == ConnectionState::open) return false;
    stream.received_as = view->state;
    receiver_.close(id, now);
    return false;
  }

  /// Late segments of a connection that is over may open it once more, for the receiver's initial number is a cookie:
  /// the sender, which knows of none, resets it.
  bool consume_echo(ConnectionId id, const StreamView& view, Nanos now) {
    receiver_.release(id, view.bytes.size());
    if (view.state != ConnectionState::open) receiver_.close(id, now);
    return false;
  }

  const StreamScenario& scenario_;
  std::vector<Stream>& streams_;
  const SeededPayload& payload_;
  Wire& out_;
  std::vector<std::string>& failures_;
  testing::StepLane* lane_ = nullptr;  ///< the receiver's, if it has one
  std::list<Bytes> lent_;              ///< frames
  StreamReceiver receiver_;
  std::vector<ConnectionId> waiting_;
  std::uint64_t break_at_ = 0;
};

/// When to begin so that the first connection's numbers pass 2^32 among its bytes: initial numbers follow the clock.
std::int64_t start_time(const StreamScenario& scenario, Random& random) {
  constexpr std::int64_t kStart = 1'000'000'000;
  if (!scenario.wraps) return kStart;
  struct Nothing final : PayloadSource {
    void read(ConnectionId, std::uint64_t, std::uint32_t, std::uint8_t*, packet::ChecksumSum&) const override {}
  } const nothing{};
  StreamSender probe = std::move(StreamSender::create(sender_settings_of(scenario), nothing, Nanos{kStart})).value();
  (void)probe.connect({kReceiverAddress, kListen}, kReceiverMac, Nanos{kStart});
  Bytes frame(probe.frame_bytes());
  const std::uint32_t length = probe.next_frame(frame, Nanos{kStart});
  Segment segment{frame.data(), length, 0, Verdict::forward};
  const packet::ParsedFrame parsed = packet::parse(frame_at(&segment));
  const std::uint32_t initial = packet::TcpView(frame.data() + parsed.l4_offset).sequence();
  const auto before = static_cast<std::uint32_t>(random.below(scenario.bytes + 2));
  return kStart + std::int64_t{0U - initial - before} * 4000;
}

void check_stream(const StreamScenario& scenario, std::size_t i, const Stream& stream,
                  std::vector<std::string>& failures) {
  const auto fail = [&](const std::string& what) { failures.push_back(fmt::format("connection {}: {}", i, what)); };
  if (stream.aborted_by_sender || stream.aborted_by_receiver) {
    if (stream.received > scenario.bytes) fail("received more than was sent");
    if (stream.aborted_by_receiver && !stream.sent_as) fail("the sender never learnt that it was aborted");
    return;
  }
  if (stream.sent_as != SendState::finished) {
    fail(stream.sent_as ? fmt::format("ended as {} for the sender", static_cast<int>(*stream.sent_as))
                        : "did not end for the sender");
  }
  if (stream.received_as != ConnectionState::finished) {
    fail(stream.received_as ? fmt::format("ended as {} for the receiver", static_cast<int>(*stream.received_as))
                            : "did not end for the receiver");
  }
  if (stream.received != scenario.bytes) fail(fmt::format("received {} of {} bytes", stream.received, scenario.bytes));
}

}  // namespace

StreamOutcome run(const StreamScenario& scenario) {
  StreamOutcome outcome;
  Random random(scenario.seed + 3);
  const SeededPayload payload(scenario.seed);
  sim::EventQueue events;
  const std::int64_t start = start_time(scenario, random);
  events.run_until(start);
  std::vector<Stream> streams(scenario.connections);
  Wire there(events, scenario.wire, scenario.seed + 4);
  Wire back(events, scenario.wire, scenario.seed + 5);
  SendingHost sender(events, scenario, streams, payload, there, Nanos{start});
  ReceivingHost receiver(events, scenario, streams, payload, back, outcome.failures, Nanos{start});
  there.connect(receiver);
  back.connect(sender);
  sender.wake(start);
  while (!(sender.idle() && receiver.idle()) && outcome.failures.empty()) {
    if (events.empty()) {
      outcome.failures.emplace_back("deadlock: nothing will ever happen");
    } else if (events.now() - start > kLongest || sender.turns() + receiver.turns() > kMostTurns) {
      outcome.failures.push_back(fmt::format("does not end: {} turns of the sender, {} of the receiver, {:.1f} s",
                                             sender.turns(), receiver.turns(),
                                             static_cast<double>(events.now() - start) * 1e-9));
    } else {
      events.step();
    }
  }
  const SenderCounters& counters = sender.sender().counters();
  outcome.seconds = static_cast<double>(events.now() - start) * 1e-9;
  outcome.frames = there.frames() + back.frames();
  outcome.retransmitted = counters.retransmitted.get();
  outcome.timeouts = counters.timeouts.get();
  outcome.lane_acknowledgements = receiver.receiver().counters().lane_acknowledgements.get();
  for (std::size_t i = 0; i < streams.size(); ++i) check_stream(scenario, i, streams[i], outcome.failures);
  const std::uint64_t ended = counters.finished.get() + counters.refused.get() + counters.reset.get() +
                              counters.timed_out.get() + counters.aborted.get();
  if (!receiver.stop_lane()) outcome.failures.emplace_back("frames that were lent to the lane did not come back");
  if (outcome.failures.empty() && counters.started.get() != ended) outcome.failures.emplace_back("ends do not add up");
  return outcome;
}

}  // namespace warpline::stream
