// SPDX-License-Identifier: Apache-2.0
#include "places/sender_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "places/drawn_listener.h"
#include "warpline/stream/stream_sender.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using Frame = DrawnListener::Frame;

SenderSettings draw_settings(Random& random) {
  const bool v4 = random.below(2) == 0;
  constexpr std::uint16_t kMtus[] = {1500, 9000, 1280, 576};
  SenderSettings settings;
  settings.mac = testing::kPeerMac;
  settings.address = *parse_ip(v4 ? "10.0.0.2" : "fd00::2");
  settings.mtu = kMtus[random.below(v4 ? 4 : 3)];
  settings.connections = static_cast<std::uint32_t>(1 + random.below(5));
  settings.first_port = 40'000;
  settings.last_port = static_cast<std::uint16_t>(40'000 + random.below(12));
  settings.window_bytes = std::max<std::uint64_t>(std::uint64_t{1} << (11 + random.below(10)), settings.mtu);
  settings.congestion = random.below(3) == 0 ? CongestionKind::fixed : CongestionKind::cubic;
  settings.nagle = random.below(2) == 0;
  settings.secret[0] = static_cast<std::uint8_t>(1 + random.below(200));
  settings.time_wait = milliseconds(1000);
  settings.fin_wait = milliseconds(3000);
  if (random.below(2) == 0) settings.user_timeout = milliseconds(100'000);
  return settings;
}

class SenderRun final : private PayloadSource {
 public:
  explicit SenderRun(std::uint64_t seed)
      : random_(mix64(seed) + 77),
        settings_(draw_settings(random_)),
        peer_(*parse_ip(std::holds_alternative<Ipv4Address>(settings_.address) ? "10.0.0.1" : "2001:db8::7")),
        loss_(random_.below(4) == 0 ? 0 : random_.below(30)),
        now_{1'000'000'000 + static_cast<std::int64_t>(random_.below(1ULL << 44))},
        sender_(std::move(StreamSender::create(settings_, *this, now_)).value()),
        buffer_(sender_.frame_bytes()) {}

  SenderOutcome run() {
    const std::uint64_t turns = 200 + random_.below(600);
    for (std::uint64_t i = 0; i < turns && outcome_.failure.empty(); ++i) {
      if (random_.below(4) == 0) call();
      if (random_.below(6) == 0) listen();
      turn();
      pass_time();
    }
    if (outcome_.failure.empty()) end();
    const SenderCounters& counters = sender_.counters();
    outcome_.started = counters.started.get();
    outcome_.finished = counters.finished.get();
    outcome_.reset = counters.reset.get() + counters.refused.get();
    outcome_.timed_out = counters.timed_out.get();
    outcome_.aborted = counters.aborted.get();
    outcome_.retransmitted = counters.retransmitted.get();
    outcome_.bytes = counters.acknowledged.get();
    return std::move(outcome_);
  }

 private:
  /// A connection of which the application has not heard that it ended.
  struct Flow {
    std::uint64_t stream = 0;
    std::uint16_t port = 0;
    std::uint64_t offered = 0;
    bool closed = false;
    Nanos begin{};
    std::int64_t shortest = 0;  ///< ns: of all timeouts that it had
    SendView before{};
  };
  /// A frame on its way to the sender.
  struct Flying {
    Nanos at;
    std::uint16_t port;
    Frame frame;
  };
  using Flows = std::map<ConnectionId, Flow>;

  bool expect(bool right, std::string_view what) {
    if (!right && outcome_.failure.empty()) outcome_.failure = what;
    return right;
  }
  [[nodiscard]] bool often() { return calm_ || random_.below(4) != 0; }
  [[nodiscard]] bool is_lost() { return !calm_ && random_.below(100) < loss_; }
  [[nodiscard]] Flows::iterator any_flow() {
    return std::next(flows_.begin(), static_cast<std::ptrdiff_t>(random_.below(flows_.size())));
  }

  void read(ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    fill(connection, offset, {to, length});
    sum.add(to, length);
  }
  void fill(ConnectionId connection, std::uint64_t offset, std::span<std::uint8_t> to) const {
    const std::uint64_t stream = streams_.at(connection);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = DrawnListener::byte_at(stream, offset + i);
  }

  // The application.
  void connect() {
    const std::uint32_t used = sender_.connections();
    const std::uint32_t ports = settings_.last_port - settings_.first_port + 1U;
    const bool named = !calm_ && random_.below(5) == 0;
    const std::uint16_t port = named ? static_cast<std::uint16_t>(settings_.first_port + random_.below(ports)) : 0;
    const auto id = sender_.connect({peer_, testing::kPort}, testing::kOurMac, now_, port);
    expect(!id || used < settings_.connections, "more connections than places");
    expect(id || port != 0 || used >= std::min(settings_.connections, ports), "a free place is not given");
    if (!id) return;
    const auto view = sender_.view(*id);
    if (!expect(view && view->state == SendState::opening && (port == 0 || view->local_port == port), "no new view")) {
      return;
    }
    const std::uint64_t stream = ++last_stream_;
    expect(streams_.emplace(*id, stream).second, "a name is given twice");
    flows_[*id] = {.stream = stream,
                   .port = view->local_port,
                   .begin = now_,
                   .shortest = std::min(settings_.user_timeout, settings_.connect_timeout).value,
                   .before = *view};
    std::erase_if(wire_, [&](const Flying& one) { return one.port == view->local_port; });
    by_port_[view->local_port] = stream;
    const DrawnListener::Ends ends{settings_.address, peer_, view->local_port, settings_.mtu};
    DrawnListener& listener = listeners_.try_emplace(stream, ends, stream, random_).first->second;
    if (calm_) listener.calm_down();
  }
  void offer(ConnectionId id, Flow& flow) {
    const std::uint64_t bytes = random_.below(random_.below(3) == 0 ? 200'000 : 10'000);
    const bool offered = sender_.offer(id, bytes);
    if (offered) flow.offered += bytes;
    const auto view = sender_.view(id);
    expect(view && offered == (!flow.closed && view->state <= SendState::open), "bytes are offered to what is closed");
  }
  void set_timeout(ConnectionId id, Flow& flow) {
    const auto view = sender_.view(id);
    const std::int64_t timeout = random_.below(8) == 0
                                     ? StreamSender::kNeverGivesUp.value
                                     : static_cast<std::int64_t>(random_.below(100)) * 1'000'000'000 - 1'000'000'000;
    const bool set = sender_.set_user_timeout(id, Nanos{timeout}, now_);
    expect(view && set == (timeout > 0 && view->state <= SendState::open), "a timeout is given to what has ended");
    if (set) flow.shortest = std::min(flow.shortest, timeout);
  }
  void call() {
    if (flows_.empty() || random_.below(4) == 0) connect();
    if (!gone_.empty()) call_void(gone_[random_.below(gone_.size())]);
    if (flows_.empty()) return;
    const auto [id, flow] = *any_flow();
    switch (random_.below(20)) {
      case 0:
        sender_.abort(id, now_);
        return forget(id);
      case 1:
      case 2:
        return set_timeout(id, flows_.at(id));
      case 3:
        return sender_.set_next_hop(testing::kOurMac);
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
        flows_.at(id).closed = true;
        return sender_.close(id);
      default:
        return offer(id, flows_.at(id));
    }
  }
  void call_void(ConnectionId id) {
    const std::uint32_t before = sender_.connections();
    bool taken = sender_.offer(id, 10) || sender_.set_user_timeout(id, milliseconds(1), now_);
    taken = taken || sender_.view(id).has_value();
    sender_.close(id);
    sender_.abort(id, now_);
    expect(!taken && sender_.connections() == before, "a name that is void is taken");
  }
  void forget(ConnectionId id) {
    flows_.erase(id);
    gone_.push_back(id);
  }

  void check_view(ConnectionId id, Flow& flow) {
    const auto view = sender_.view(id);
    if (!expect(view.has_value(), "a connection has no view")) return;
    const DrawnListener& listener = listeners_.at(flow.stream);
    expect(view->local_port == flow.port && view->offered == flow.offered, "a view says something else");
    expect(view->acknowledged <= view->sent && view->sent <= view->offered, "more was sent than offered");
    expect(view->acknowledged <= listener.acknowledged(), "more is acknowledged than the peer said");
    expect(view->in_flight <= view->sent - view->acknowledged + 1, "more is in flight than was sent");
    expect(view->state != SendState::open || view->window != 0, "nothing may ever be sent");
    const bool forward = view->state >= flow.before.state && view->sent >= flow.before.sent &&
                         view->acknowledged >= flow.before.acknowledged;
    expect(forward, "a connection goes back");
    flow.before = *view;
  }
  void take(const SendEvent& event) {
    const auto found = flows_.find(event.connection);
    if (!expect(found != flows_.end(), "an event names no connection")) return;
    Flow& flow = found->second;
    const DrawnListener& listener = listeners_.at(flow.stream);
    expect(event.state >= flow.before.state && event.acknowledged >= flow.before.acknowledged, "an event goes back");
    expect(event.acknowledged <= listener.acknowledged(), "an event says more than the peer did");
    if (event.state <= SendState::open) return;
    const bool whole = flow.closed && event.acknowledged == flow.offered && listener.has_acknowledged_end();
    if (event.state == SendState::finished) expect(whole, "it has not finished");
    if (event.state == SendState::reset || event.state == SendState::refused) {
      expect(listener.has_reset(), "the peer has not reset it");
    }
    if (event.state == SendState::timed_out)
      expect(now_.value - flow.begin.value >= flow.shortest, "it ends too early");
    forget(event.connection);
  }

  // The wire.
  void launch(std::uint16_t port, std::vector<Frame> frames) {
    for (Frame& frame : frames) {
      if (is_lost()) continue;
      wire_.push_back(
          {Nanos{now_.value + static_cast<std::int64_t>(random_.below(5'000'000))}, port, std::move(frame)});
    }
  }
  void listen() {
    if (by_port_.empty()) return;
    const auto [port, stream] =
        *std::next(by_port_.begin(), static_cast<std::ptrdiff_t>(random_.below(by_port_.size())));
    std::vector<Frame> frames;
    listeners_.at(stream).act(now_, frames);
    launch(port, std::move(frames));
  }
  void receive_some() {
    for (auto flying = wire_.begin(); flying != wire_.end();) {
      if (flying->at > now_ || !often()) {
        ++flying;
        continue;
      }
      Frame& frame = flying->frame;
      Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
      sender_.receive(frame_at(&segment), false, now_);
      ++given_;
      flying = wire_.erase(flying);
    }
  }
  /// Writes the next frame, with its payload or without.
  [[nodiscard]] std::uint32_t next_frame() {
    if (random_.below(2) == 0) return sender_.next_frame(buffer_, now_);
    const UnfilledFrame frame = sender_.next_unfilled(buffer_, now_);
    if (frame.payload == 0) return frame.length;
    const std::span<std::uint8_t> payload(buffer_.data() + frame.length - frame.payload, frame.payload);
    fill(frame.connection, frame.offset, payload);
    std::uint8_t* const checksum = buffer_.data() + frame.checksum;
    packet::ChecksumSum sum;
    sum.add16(static_cast<std::uint16_t>(~packet::load_be16(checksum)));
    sum.add(payload.data(), frame.payload);
    packet::store_be16(checksum, sum.checksum());
    return frame.length;
  }
  void hear(std::span<std::uint8_t> bytes) {
    const auto reply = testing::read_reply(bytes);
    if (!expect(reply.has_value(), "what is sent is no frame")) return;
    const std::uint16_t port = reply->tcp().source_port;
    if (!expect(by_port_.contains(port), "a frame has a port of nobody")) return;
    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    const packet::ParsedFrame parsed = packet::parse(frame_at(&segment));
    if (is_lost()) return;
    const std::uint64_t stream = by_port_.at(port);
    DrawnListener& listener = listeners_.at(stream);
    std::vector<Frame> frames;
    const std::string_view wrong =
        listener.hear(*reply, bytes.subspan(parsed.payload_offset, parsed.payload_length), now_, frames);
    expect(wrong.empty(), wrong);
    for (const auto& [id, flow] : flows_) {
      if (flow.stream == stream && listener.has_end()) {
        expect(flow.closed && listener.end() == flow.offered, "the end lies elsewhere");
      }
    }
    launch(port, std::move(frames));
  }

  void turn() {
    receive_some();
    if (sender_.next_deadline() <= now_) sender_.advance(now_);
    expect(sender_.next_deadline() > now_, "something that is due is left");
    for (auto& [id, flow] : flows_) check_view(id, flow);
    if (often()) {
      while (const auto event = sender_.poll()) take(*event);
    }
    for (std::uint64_t most = calm_ ? 500 : random_.below(60); most != 0 && outcome_.failure.empty(); --most) {
      const std::uint32_t length = next_frame();
      if (length == 0) return;
      hear({buffer_.data(), length});
    }
  }
  void pass_time() {
    const std::uint64_t kind = random_.below(200);
    std::uint64_t most = 4'000'000;
    if (kind >= 190) most = 400'000'000;
    if (kind == 199) most = 400'000'000'000;
    now_.value += static_cast<std::int64_t>(random_.below(most));
  }

  void be_calm() {
    calm_ = true;
    for (auto& [stream, listener] : listeners_) listener.calm_down();
    for (auto& [id, flow] : flows_) {
      // Only who is silent is given up: a connection that stands still for another reason is left in the end.
      const bool silent = listeners_.at(flow.stream).is_silent();
      const Nanos timeout = silent ? milliseconds(100'000) : StreamSender::kNeverGivesUp;
      if (sender_.set_user_timeout(id, timeout, now_)) flow.shortest = std::min(flow.shortest, timeout.value);
      sender_.close(id);
      flow.closed = true;
    }
  }
  /// True once there is no connection any more.
  [[nodiscard]] bool settle() {
    const Nanos begin = now_;
    while (outcome_.failure.empty() && now_.value - begin.value < milliseconds(2'000'000).value) {
      turn();
      listen();
      if (sender_.connections() == 0 && flows_.empty()) return true;
      Nanos next = std::min(sender_.next_deadline(), Nanos{now_.value + 1'000'000'000});
      for (const Flying& one : wire_) next = std::min(next, one.at);
      now_.value = std::max(next.value, now_.value + 100'000);
    }
    return false;
  }
  void end() {
    be_calm();
    if (!settle()) {
      expect(false, fmt::format("{} connections are left", sender_.connections()));
      return;
    }
    expect(sender_.next_deadline().value == std::numeric_limits<std::int64_t>::max(), "a timer is armed");
    expect(sender_.lingering() == 0, "connections linger");
    const SenderCounters& counters = sender_.counters();
    const std::uint64_t ended = counters.finished.get() + counters.refused.get() + counters.reset.get() +
                                counters.timed_out.get() + counters.aborted.get();
    expect(counters.started.get() == ended, "connections that were started have no end");
    connect();
    if (!expect(!flows_.empty(), "no further connection is opened")) return;
    const ConnectionId id = flows_.begin()->first;
    const std::uint64_t finished = counters.finished.get();
    offer(id, flows_.at(id));
    flows_.at(id).closed = true;
    sender_.close(id);
    expect(settle() && counters.finished.get() == finished + 1, "a further connection does not finish");
    std::uint64_t frames = 0;
    for (const Counter& disposition : counters.dispositions) frames += disposition.get();
    expect(frames == given_, "frames are not accounted for");
  }

  Random random_;
  SenderSettings settings_;
  IpAddress peer_;
  std::uint64_t loss_;  ///< percent
  Nanos now_;
  StreamSender sender_;
  Frame buffer_;
  std::map<ConnectionId, std::uint64_t> streams_;  ///< of all names that were ever given
  std::uint64_t last_stream_ = 0;
  Flows flows_;
  std::vector<ConnectionId> gone_;
  std::map<std::uint64_t, DrawnListener> listeners_;  ///< by the stream that they receive
  std::map<std::uint16_t, std::uint64_t> by_port_;    ///< the last stream of each of the sender's ports
  std::list<Flying> wire_;
  std::uint64_t given_ = 0;  ///< frames
  bool calm_ = false;
  SenderOutcome outcome_;
};

}  // namespace

SenderOutcome run_sender(std::uint64_t seed) { return SenderRun(seed).run(); }

}  // namespace warpline::stream
