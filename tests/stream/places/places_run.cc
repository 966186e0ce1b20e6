// SPDX-License-Identifier: Apache-2.0
#include "places/places_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "places/drawn_peer.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/lanes/stream_reader.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using Frame = DrawnPeer::Frame;

bool has_queues(ReceiverPath path) { return path == ReceiverPath::queues || path == ReceiverPath::queues_to_consumers; }
bool has_consumers(ReceiverPath path) { return path >= ReceiverPath::bursts_to_consumers; }

ReceiverSettings draw_settings(Random& random, ReceiverPath path) {
  ReceiverSettings settings;
  settings.mac = testing::kOurMac;
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {testing::kPort};
  settings.connections = static_cast<std::uint32_t>(1 + random.below(5));
  settings.half_open = static_cast<std::uint32_t>(random.below(4));  // 0: by cookies alone
  settings.ring_bytes = 64 << 10;
  settings.secret[0] = static_cast<std::uint8_t>(1 + random.below(200));
  if (random.below(2) == 0)
    settings.keepalive_idle = milliseconds(static_cast<std::int64_t>(1000 + random.below(100'000)));
  settings.consumers = has_consumers(path);
  settings.lane_acknowledges = path != ReceiverPath::direct && random.below(2) == 0;
  return settings;
}

class PlacesRun final : private OtherFrames {
 public:
  PlacesRun(std::uint64_t seed, ReceiverPath path)
      : path_(path), random_(mix64(seed) + static_cast<std::uint64_t>(path)), settings_(draw_settings(random_, path)) {
    now_.value += static_cast<std::int64_t>(random_.below(1'000'000));
    if (path == ReceiverPath::direct) {
      receiver_.emplace(std::move(StreamReceiver::create(settings_, now_)).value());
      return;
    }
    const auto burst = static_cast<std::uint32_t>(16U << random_.below(3));
    const auto slots = static_cast<std::uint32_t>(2U << random_.below(2));
    auto lane =
        std::move(testing::StepLane::create(lane_shape(settings_, burst, slots, has_queues(path) ? 64 : 0))).value();
    lane_ = lane.get();
    receiver_.emplace(std::move(StreamReceiver::create(settings_, now_, std::move(lane))).value());
  }

  PlacesOutcome run() {
    while (peers_.size() < kPeers) add_peer();
    const std::uint64_t turns = 300 + random_.below(700);
    for (std::uint64_t i = 0; i < turns && outcome_.failure.empty(); ++i) {
      for (std::uint64_t acts = random_.below(4); acts != 0; --acts) act();
      turn();
      pass_time();
    }
    if (outcome_.failure.empty()) end();
    const ReceiverCounters& counters = receiver_->counters();
    outcome_.opened = counters.opened.get();
    outcome_.ended = counters.finished.get();
    outcome_.reset = counters.reset.get();
    outcome_.aborted = counters.aborted.get();
    return std::move(outcome_);
  }

 private:
  static constexpr std::size_t kPeers = 4;
  /// What the application knows of a connection.
  struct Known {
    std::uint64_t released = 0;
    bool ended = false;
  };

  void expect(bool right, std::string_view what) {
    if (!right && outcome_.failure.empty()) outcome_.failure = what;
  }
  [[nodiscard]] bool often() { return calm_ || random_.below(3) != 0; }

  void add_peer() { peers_.emplace_back(next_port_++, random_); }
  void act() {
    const auto peer = std::next(peers_.begin(), static_cast<std::ptrdiff_t>(random_.below(peers_.size())));
    if (peer->is_over()) {
      peers_.erase(peer);
      return add_peer();
    }
    std::vector<Frame> frames;
    peer->act(now_, frames);
    for (Frame& frame : frames) give(std::move(frame));
  }

  void give(Frame frame) {
    ++given_;
    if (lane_ != nullptr) {
      waiting_.push_back(std::move(frame));
      return;
    }
    Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
    receiver_->receive(frame_at(&segment), false, now_);
  }

  void hear(const testing::Reply& reply) {
    if (!calm_ && random_.below(12) == 0) return;  // lost
    const std::uint16_t port = reply.tcp().destination_port;
    const auto peer = std::ranges::find_if(peers_, [port](const DrawnPeer& one) { return one.port() == port; });
    if (peer == peers_.end()) return;
    std::vector<Frame> frames;
    expect(peer->hear(reply, now_, frames), "what was never sent was acknowledged");
    for (Frame& frame : frames) give(std::move(frame));
  }

  // The frames of a lane.
  [[nodiscard]] bool take(FrameRef, void*) override { return false; }
  void drop(void* token) {
    const std::size_t before = lent_.size();
    std::erase_if(lent_, [token](const Frame& frame) { return &frame == token; });
    expect(lent_.size() + 1 == before, "a frame was given back that was not lent");
  }
  void lend() {
    for (; !waiting_.empty() && receiver_->room() != 0; waiting_.pop_front()) {
      Frame& frame = lent_.emplace_back(std::move(waiting_.front()));
      frame.reserve(kBuffer);
      Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
      receiver_->give(frame_at(&segment), false, &frame, random_.below(4) != 0);
    }
  }
  void take_back() {
    std::array<void*, 3> tokens;
    while (const std::uint32_t count = receiver_->take_back(tokens)) {
      for (std::uint32_t i = 0; i < count; ++i) drop(tokens[i]);
    }
  }
  void take_posted() {
    std::array<PostedFrame, 4> posted;
    while (const std::uint32_t count = receiver_->take_posted(posted)) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint8_t* const bytes = static_cast<Frame*>(posted[i].token)->data();
        Frame frame(bytes, bytes + posted[i].length);
        drop(posted[i].token);
        send(frame);
      }
    }
  }
  void turn_lane() {
    lend();
    receiver_->end_burst(now_);
    for (std::uint64_t steps = random_.below(4) + (calm_ ? 8 : 0); steps != 0 && lane_->step(); --steps) {
    }
    if (receiver_->has_queues()) take_posted();
    (void)receiver_->collect(this, now_);
    take_back();
  }

  void send(std::span<std::uint8_t> frame) {
    if (const auto reply = testing::read_reply(frame)) {
      hear(*reply);
    } else {
      expect(false, "a frame was sent that is none");
    }
  }
  void send_replies() {
    std::uint8_t frame[StreamReceiver::kReplyBytes];
    for (std::uint64_t most = calm_ ? 1000 : random_.below(6); most != 0; --most) {
      const std::uint32_t length = receiver_->next_reply(frame, now_);
      if (length == 0) return;
      send({frame, length});
    }
  }

  // The application.
  void compare(std::uint16_t port, std::uint64_t begin, const std::uint8_t* bytes, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (bytes[i] != DrawnPeer::byte_at(port, begin + i)) {
        return expect(false, fmt::format("byte {} of port {} is wrong", begin + i, port));
      }
    }
    outcome_.bytes += count;
  }
  void read(const StreamEvent& event) {
    const auto view = receiver_->view(event.connection);
    if (!view) return expect(false, "an event names no connection");
    Known& known = known_[event.connection];
    bool ends = event.state != ConnectionState::open;
    if (has_consumers(path_)) {
      ends = ends || event.consumed;
    } else {
      expect(view->begin == known.released, "what can be read begins elsewhere");
      const std::uint64_t count = often() ? view->bytes.size() : random_.below(view->bytes.size() + 1);
      compare(view->peer.port, view->begin, view->bytes.data(), count);
      expect(receiver_->release(event.connection, count), "bytes that can be read cannot be released");
      known.released += count;
    }
    known.ended = known.ended || ends;
    if (!calm_ && random_.below(60) == 0) {
      receiver_->abort(event.connection, now_);
      known_.erase(event.connection);
    } else if (ends && often()) {
      receiver_->close(event.connection, now_);
      known_.erase(event.connection);
    }
  }
  void close_ended() {
    std::erase_if(known_, [this](const auto& one) {
      if (one.second.ended) receiver_->close(one.first, now_);
      return one.second.ended;
    });
  }
  void consume() {
    const StreamBoard& board = receiver_->board();
    for (std::uint32_t place = 0; place < board.count; ++place) {
      StreamReader stream(board, place);
      if (!stream) continue;
      const StreamReach reach = stream.reach();
      const std::uint64_t left = reach.committed - stream.released();
      const std::uint64_t count = calm_ ? left : random_.below(left + 1);
      // The application may have closed it: then its peer is not known here.
      if (const auto view = receiver_->view(stream.connection())) {
        compare(view->peer.port, stream.released(), stream.at(stream.released()), count);
      }
      if (count != 0) stream.release(count);
      const bool tired = !calm_ && random_.below(80) == 0;
      if ((reach.ended() && count == left) || tired) stream.finish();
    }
  }
  void turn_application() {
    while (const auto event = receiver_->poll()) read(*event);
    if (calm_ || random_.below(4) == 0) close_ended();
  }

  void turn() {
    if (lane_ != nullptr) {
      turn_lane();
    } else if (often()) {
      receiver_->end_burst(now_);
    }
    if (receiver_->next_deadline() <= now_) receiver_->advance(now_);
    if (often()) turn_application();
    if (has_consumers(path_) && often()) consume();
    send_replies();
  }
  void pass_time() {
    const std::uint64_t kind = random_.below(20);
    std::uint64_t most = 3'000'000;
    if (kind >= 14) most = 100'000'000;
    if (kind == 18) most = 3'000'000'000;
    if (kind == 19) most = random_.below(40) == 0 ? 200'000'000'000 : 2000;
    now_.value += static_cast<std::int64_t>(random_.below(most));
  }

  /// Nobody sends any more: all ends by the application, or by time.
  void end() {
    calm_ = true;
    peers_.clear();
    for (int i = 0; i < 1100 && outcome_.failure.empty(); ++i) {
      turn();
      if (i >= 50) {
        for (const auto& one : known_) receiver_->abort(one.first, now_);
        known_.clear();
      }
      now_.value += i < 100 ? 10'000'000 : 700'000'000;
    }
    expect(receiver_->connections() == 0, "places are taken");
    expect(receiver_->next_deadline().value == std::numeric_limits<std::int64_t>::max(), "a timer is armed");
    const ReceiverCounters& counters = receiver_->counters();
    const std::uint64_t ended =
        counters.finished.get() + counters.reset.get() + counters.timed_out.get() + counters.aborted.get();
    expect(counters.opened.get() == ended, "connections that were opened have no end");
    if (outcome_.failure.empty()) open_another();
    if (lane_ != nullptr) {
      receiver_->stop_lane();
      take_back();
      expect(lent_.empty(), "frames were not given back");
    }
    std::uint64_t frames = 0;
    for (const Counter& disposition : counters.dispositions) frames += disposition.get();
    expect(frames + waiting_.size() == given_, "frames are not accounted for");
  }
  void open_another() {
    add_peer();
    for (int i = 0; i < 40 && !peers_.back().is_open(); ++i) {
      std::vector<Frame> frames;
      peers_.back().connect(now_, frames);
      give(std::move(frames.front()));
      turn();
      now_.value += 300'000'000;
    }
    expect(peers_.back().is_open(), "no further connection is opened");
  }

  static constexpr std::size_t kBuffer = 256;  ///< bytes, so that a lane may write a reply over the shortest frame

  ReceiverPath path_;
  Random random_;
  ReceiverSettings settings_;
  Nanos now_{1'000'000'000};
  std::optional<StreamReceiver> receiver_;
  testing::StepLane* lane_ = nullptr;
  std::list<DrawnPeer> peers_;
  std::uint16_t next_port_ = 40'000;
  std::uint64_t given_ = 0;    ///< frames
  std::deque<Frame> waiting_;  ///< for room in the lane
  std::list<Frame> lent_;
  std::map<ConnectionId, Known> known_;
  bool calm_ = false;
  PlacesOutcome outcome_;
};

}  // namespace

PlacesOutcome run_places(std::uint64_t seed, ReceiverPath path) { return PlacesRun(seed, path).run(); }

}  // namespace warpline::stream
