// SPDX-License-Identifier: Apache-2.0
// Receivers of streams with lanes, of bursts and of queues, beside one without. Whatever segments come, in whatever
// pieces: where each is settled before the next one comes, all three send the same bytes, store the same, and drop for
// the same reasons. Where frames are in flight while others come and the application reads, bytes that could be read
// stay as they were; no frame is written to but one that is posted, and all come back.

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fuzz/packet_input.h"
#include "fuzz/streams/stream_segments.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/stream_receiver.h"

using namespace warpline;

namespace {

/// A frame that a lane may have, in the pieces that it came in.
struct LentPieces {
  LentPieces(const packet::FrameBytes& frame, const std::vector<std::uint32_t>& cuts, bool room) : has_room(room) {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const std::size_t left = frame.size() - at;
      const std::size_t length = i == cuts.size() ? left : std::min<std::size_t>(cuts[i], left);
      // Exactly as many bytes as may be touched, so that each one beyond is found.
      const std::size_t bytes = i == 0 && room ? std::max(length, stream::StreamReceiver::kReplyBytes) : length;
      pieces.push_back(std::make_unique<std::uint8_t[]>(bytes));
      std::copy_n(frame.data() + at, length, pieces.back().get());
      segments.push_back({pieces.back().get(), static_cast<std::uint32_t>(length),
                          static_cast<std::uint16_t>(cuts.size() - i), Verdict::forward});
      at += length;
    }
    was = frame;
  }
  [[nodiscard]] bool is_as_it_was() const {
    auto at = was.begin();
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (!std::equal(pieces[i].get(), pieces[i].get() + segments[i].length, at)) return false;
      at += segments[i].length;
    }
    return true;
  }

  std::vector<std::unique_ptr<std::uint8_t[]>> pieces;
  std::vector<Segment> segments;
  packet::FrameBytes was;
  bool has_room;
};

/// A receiver, with a lane or without, and all that it sends.
class LaneReceiver {
 public:
  enum class Kind : std::uint8_t { alone, bursts, queues };

  LaneReceiver(Kind kind, bool acknowledges, std::uint32_t burst, Nanos now)
      : receiver_(make(kind, acknowledges, burst, now)) {}
  ~LaneReceiver() {
    if (lane_ == nullptr) return;
    receiver_.stop_lane();
    take_posted();
    take_back();
    require(lent_.empty(), "all frames come back");
  }
  LaneReceiver(const LaneReceiver&) = delete;
  LaneReceiver& operator=(const LaneReceiver&) = delete;

  [[nodiscard]] stream::StreamReceiver& operator*() { return receiver_; }
  [[nodiscard]] stream::StreamReceiver* operator->() { return &receiver_; }

  void give(const packet::FrameBytes& frame, const std::vector<std::uint32_t>& cuts, bool right, bool room, Nanos now) {
    if (lane_ == nullptr) {
      packet::SegmentedFrame pieces(frame, cuts);
      receiver_.receive(pieces.ref(), right, now);
      require(pieces.bytes() == frame, "a frame is not written to");
      return;
    }
    while (receiver_.room() < cuts.size() + 1) settle(now);
    LentPieces& lent = lent_.emplace_back(frame, cuts, room);
    receiver_.give(frame_at(lent.segments.data()), right, &lent, room);
  }
  /// The lane takes so many bursts or rounds at most, of what it was handed.
  void turn(Nanos now, std::uint32_t most) {
    receiver_.end_burst(now);
    if (lane_ == nullptr) return;
    while (most-- != 0 && lane_->step()) {
    }
    take_posted();
    (void)receiver_.collect(nullptr, now);
    take_back();
  }
  void settle(Nanos now) {
    if (lane_ == nullptr) return receiver_.end_burst(now);
    bool stepped = false;
    do {
      receiver_.end_burst(now);
      stepped = lane_->step();
      take_posted();
      (void)receiver_.collect(nullptr, now);
      take_back();
    } while (stepped || receiver_.in_flight() != 0);
  }
  /// Returns all frames that it sends now, without what pads them, in no order.
  [[nodiscard]] std::vector<packet::FrameBytes> replies(Nanos now) {
    std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
    while (const std::uint32_t length = receiver_.next_reply(reply, now)) note_sent({reply, reply + length});
    std::sort(sent_.begin(), sent_.end());
    return std::exchange(sent_, {});
  }

 private:
  stream::StreamReceiver make(Kind kind, bool acknowledges, std::uint32_t burst, Nanos now) {
    stream::ReceiverSettings settings = receiver_of_two();
    if (kind == Kind::alone) return std::move(stream::StreamReceiver::create(settings, now)).value();
    settings.lane_acknowledges = acknowledges;
    const std::uint32_t slots = kind == Kind::queues ? 2 * burst : 0;
    auto lane = std::move(stream::testing::StepLane::create(stream::lane_shape(settings, burst, 2, slots))).value();
    lane_ = lane.get();
    return std::move(stream::StreamReceiver::create(settings, now, std::move(lane))).value();
  }
  void take_posted() {
    std::array<stream::PostedFrame, 4> posted;
    while (const std::uint32_t count = receiver_.has_queues() ? receiver_.take_posted(posted) : 0) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto found = find(posted[i].token);
        require(found->has_room, "an acknowledgement is written where there is room for it");
        require(posted[i].length <= stream::StreamReceiver::kReplyBytes, "and is no longer than that");
        const std::uint8_t* const bytes = found->pieces[0].get();
        note_sent({bytes, bytes + posted[i].length});
        lent_.erase(found);
      }
    }
  }
  void take_back() {
    std::array<void*, 4> tokens;
    while (const std::uint32_t count = receiver_.take_back(tokens)) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto found = find(tokens[i]);
        require(found->is_as_it_was(), "a frame is not written to");
        lent_.erase(found);
      }
    }
  }
  [[nodiscard]] std::list<LentPieces>::iterator find(const void* token) {
    const auto found =
        std::find_if(lent_.begin(), lent_.end(), [token](const LentPieces& frame) { return &frame == token; });
    require(found != lent_.end(), "a frame comes back once");
    return found;
  }
  void note_sent(packet::FrameBytes frame) {
    packet::SegmentedFrame sent(frame);
    require(packet::verdict_of(sent.ref()) == Verdict::forward, "a reply is well formed, with right checksums");
    const packet::ParsedFrame parsed = packet::parse(sent.ref());
    frame.resize(parsed.payload_offset + parsed.payload_length);
    sent_.push_back(std::move(frame));
  }

  stream::testing::StepLane* lane_ = nullptr;
  std::list<LentPieces> lent_;
  std::vector<packet::FrameBytes> sent_;
  stream::StreamReceiver receiver_;
};

/// Where the acknowledgement number of an answered SYN is, for segments that follow.
void learn(const std::vector<packet::FrameBytes>& replies, std::uint32_t& acknowledgement) {
  for (const packet::FrameBytes& reply : replies) {
    packet::SegmentedFrame sent(reply);
    const packet::TcpView tcp(sent.ref().data() + packet::parse(sent.ref()).l4_offset);
    if ((tcp.flags() & packet::kTcpSyn) != 0 && tcp.destination_port() == 1) acknowledgement = tcp.sequence() + 1;
  }
}

packet::TcpHeader any_syn(std::uint8_t choice) {
  packet::TcpHeader tcp = first_syn((choice & 2) != 0);
  if ((choice & 4) == 0) return tcp;
  const std::uint8_t timestamps[] = {
      packet::kTcpOptionNop, packet::kTcpOptionNop, packet::kTcpOptionTimestamps, 10, 0, 0, 0, 1};
  std::copy(std::begin(timestamps), std::end(timestamps), tcp.options + tcp.options_length);
  tcp.options_length = static_cast<std::uint8_t>(tcp.options_length + 12);  // the echo is zeros
  return tcp;
}

packet::FrameBytes next_frame(FuzzInput& input, std::uint8_t choice, std::uint32_t acknowledgement) {
  const packet::FrameBytes frame = any_segment(input, acknowledgement);
  return (choice & 7) == 7 ? input.frame({frame}) : frame;
}

void compare(stream::StreamReceiver& left, stream::StreamReceiver& right) {
  const stream::ReceiverCounters& a = left.counters();
  const stream::ReceiverCounters& b = right.counters();
  for (std::size_t i = 0; i < stream::kDispositions; ++i) {
    require(a.dispositions[i].get() == b.dispositions[i].get(), "the same becomes of frames");
  }
  const std::pair<const Counter*, const Counter*> all[] = {
      {&a.bytes, &b.bytes},         {&a.opened, &b.opened},   {&a.finished, &b.finished},
      {&a.reset, &b.reset},         {&a.aborted, &b.aborted}, {&a.acknowledgements, &b.acknowledgements},
      {&a.timed_out, &b.timed_out}, {&a.cookies, &b.cookies}, {&a.refused_replies, &b.refused_replies}};
  for (const auto& [ours, theirs] : all) require(ours->get() == theirs->get(), "the same is counted");
  require(left.connections() == right.connections(), "there are as many connections");
}

/// One frame after the other, each settled before the next: there is no difference.
void run_settled(FuzzInput& input, std::uint8_t begin) {
  using Kind = LaneReceiver::Kind;
  Nanos now{1};
  LaneReceiver alone(Kind::alone, false, 16, now);
  LaneReceiver bursts(Kind::bursts, (begin & 16) != 0, 16, now);
  LaneReceiver queues(Kind::queues, (begin & 32) != 0, 32, now);
  LaneReceiver* const all[] = {&alone, &bursts, &queues};
  std::uint32_t acknowledgement = 0;
  const auto take = [&](const packet::FrameBytes& frame, const std::vector<std::uint32_t>& cuts, bool right,
                        bool room) {
    for (LaneReceiver* const each : all) {
      each->give(frame, cuts, right, room, now);
      each->settle(now);
    }
  };
  const auto answers = [&] {
    const std::vector<packet::FrameBytes> sent = alone.replies(now);
    require(sent == bursts.replies(now), "a lane of bursts changes nothing of what is sent");
    require(sent == queues.replies(now), "a lane of queues changes nothing of what is sent");
    learn(sent, acknowledgement);
  };
  if ((begin & 1) != 0) {
    const packet::TcpHeader syn = any_syn(begin);
    take(segment(syn, 0, 0), {}, false, true);
    answers();
    take(segment(third_segment(syn, acknowledgement - 1), 0, 0), {}, false, true);
  }
  std::optional<stream::ConnectionId> heard;
  for (int turn = 0; turn < 1024 && !input.empty(); ++turn) {
    const std::uint8_t choice = input.byte();
    const std::vector<std::uint32_t> cuts = input.cuts();
    take(next_frame(input, choice, acknowledgement), cuts, (choice & 8) != 0, (choice & 16) != 0);
    answers();
    for (;;) {
      const auto event = alone->poll();
      for (LaneReceiver* const other : {&bursts, &queues}) {
        const auto same = (*other)->poll();
        require(event.has_value() == same.has_value(), "there are as many events");
        if (!event) continue;
        require(event->connection == same->connection && event->state == same->state, "of the same connections");
        require(event->readable == same->readable, "with as many bytes");
      }
      if (!event) break;
      heard = event->connection;
    }
    if (heard) {
      const auto view = alone->view(*heard);
      for (LaneReceiver* const other : {&bursts, &queues}) {
        const auto same = (*other)->view(*heard);
        require(view.has_value() == same.has_value(), "the same connections are known");
        if (!view) continue;
        require(view->state == same->state && view->begin == same->begin && view->urgent_end == same->urgent_end,
                "which stand the same");
        require(std::equal(view->bytes.begin(), view->bytes.end(), same->bytes.begin(), same->bytes.end()),
                "with the same bytes");
      }
      const std::uint64_t some = view ? view->bytes.size() * (choice >> 6) / 3 : 0;
      for (LaneReceiver* const each : all) {
        (void)(*each)->release(*heard, some);
        if ((choice & 63) == 63) (*each)->close(*heard, now);
        each->settle(now);
      }
      answers();
    }
    now.value += std::int64_t{1} << (input.byte() % 36);
    for (LaneReceiver* const each : all) {
      (*each)->advance(now);
      each->settle(now);
    }
    answers();
    compare(*alone, *bursts);
    compare(*alone, *queues);
  }
}

/// Bursts of frames, some of them in flight for as long as the input says.
void run_in_flight(FuzzInput& input, std::uint8_t begin) {
  const auto kind = (begin & 8) != 0 ? LaneReceiver::Kind::bursts : LaneReceiver::Kind::queues;
  Nanos now{1};
  LaneReceiver receiver(kind, (begin & 16) != 0, (begin & 32) != 0 ? 16 : 64, now);
  std::uint32_t acknowledgement = 0;
  if ((begin & 1) != 0) {
    const packet::TcpHeader syn = any_syn(begin);
    receiver.give(segment(syn, 0, 0), {}, false, true, now);
    receiver.settle(now);
    learn(receiver.replies(now), acknowledgement);
    receiver.give(segment(third_segment(syn, acknowledgement - 1), 0, 0), {}, false, true, now);
  }
  std::optional<stream::ConnectionId> heard;
  std::uint64_t released = 0;
  packet::FrameBytes readable;
  const auto look = [&] {
    const auto view = receiver->view(*heard);
    if (!view) return;
    require(view->begin == released, "the beginning moves by what is released alone");
    require(view->bytes.size() >= readable.size(), "what could be read can be read");
    require(std::equal(readable.begin(), readable.end(), view->bytes.begin()), "and has not changed");
    require(view->bytes.size() <= 64 << 10, "no more than the ring holds");
    readable.assign(view->bytes.begin(), view->bytes.end());
  };
  for (int turn = 0; turn < 96 && !input.empty(); ++turn) {
    const std::uint8_t choice = input.byte();
    const std::vector<std::uint32_t> cuts = input.cuts();
    const packet::FrameBytes frame = next_frame(input, choice, acknowledgement);
    receiver.give(frame, cuts, (choice & 8) != 0, (choice & 16) != 0, now);
    receiver.turn(now, input.byte() % 3);
    learn(receiver.replies(now), acknowledgement);
    while (const auto event = receiver->poll()) {
      if (heard && receiver->view(*heard)) continue;
      heard = event->connection;
      released = 0;
      readable.clear();
    }
    if (heard) {
      look();
      const std::uint64_t some = readable.size() * (choice >> 6) / 3;
      if (receiver->release(*heard, some)) {
        released += some;
        readable.erase(readable.begin(), readable.begin() + static_cast<std::ptrdiff_t>(some));
        look();
      }
      if ((choice & 63) == 63) receiver->close(*heard, now);
    }
    now.value += std::int64_t{1} << (input.byte() % 36);
    receiver->advance(now);
  }
  receiver.settle(now);
  if (heard) look();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::uint8_t begin = input.byte();
  (begin & 128) != 0 ? run_in_flight(input, begin) : run_settled(input, begin);
  return 0;
}
