// SPDX-License-Identifier: Apache-2.0
#include "places/drawn_listener.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "warpline/packet/byte_order.h"

namespace warpline::stream {
namespace {

constexpr std::uint8_t kScale = 4;
constexpr std::uint32_t kFar = 1U << 29;  ///< numbers: nothing is sent so far ahead
constexpr std::uint8_t kListenersEnd = packet::kTcpFin | packet::kTcpAck;
constexpr std::uint8_t kAcceptance = packet::kTcpSyn | packet::kTcpAck;

/// Writes options behind each other.
class Options {
 public:
  explicit Options(packet::TcpHeader& tcp) : tcp_(tcp) {}
  void put(std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), tcp_.options + tcp_.options_length);
    tcp_.options_length = static_cast<std::uint8_t>(tcp_.options_length + bytes.size());
  }
  void put32(std::uint32_t value) {
    packet::store_be32(tcp_.options + tcp_.options_length, value);
    tcp_.options_length = static_cast<std::uint8_t>(tcp_.options_length + 4);
  }

 private:
  packet::TcpHeader& tcp_;
};

}  // namespace

DrawnListener::DrawnListener(const Ends& ends, std::uint64_t stream, Random& random)
    : random_(random),
      ends_(ends),
      stream_(stream),
      // Every third number comes round within its stream.
      initial_(static_cast<std::uint32_t>(random.below(3) == 0 ? 0 - random.below(3000) : random.next())),
      mss_(static_cast<std::uint16_t>(random.below(5) == 0 ? 0 : 88 + random.below(9000))),
      selective_(random.below(3) != 0),
      timestamps_(random.below(2) == 0),
      scales_(random.below(2) == 0),
      fair_(random.below(3) != 0),
      crosses_(random.below(8) == 0),
      own_total_(random.below(3) == 0 ? random.below(3000) : 0) {}

std::uint32_t DrawnListener::largest_segment() const {
  const bool v4 = std::holds_alternative<Ipv4Address>(ends_.sender);
  const std::uint32_t peers = mss_ != 0 ? mss_ : v4 ? 536 : 1220;  // RFC 9293, 3.7.1
  return std::min<std::uint32_t>(peers, ends_.mtu - (v4 ? 40U : 60U)) - (timestamps_ ? 12 : 0);
}

/// Any window. One that is fair does not end before what was announced.
std::uint16_t DrawnListener::draw_window(bool scales) {
  const std::uint64_t unit = scales ? 1U << kScale : 1;
  std::uint64_t window = one_in(15) ? 0 : random_.below(60'000);
  if (calm_) window = 60'000;
  if (!fair_ && one_in(3)) window = random_.below(3);
  if ((fair_ || calm_) && next_ + window < edge_) window = edge_ - next_;
  const auto field = static_cast<std::uint16_t>(std::min<std::uint64_t>((window + unit - 1) / unit, 0xffff));
  edge_ = std::max(edge_, next_ + field * unit);
  return field;
}

DrawnListener::Frame DrawnListener::frame(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags,
                                          std::uint32_t length, std::pair<std::uint64_t, std::uint64_t> twice,
                                          Nanos now) {
  packet::TcpFrame header;
  header.destination_mac = testing::kPeerMac;
  header.source_mac = testing::kOurMac;
  header.source = ends_.listener;
  header.destination = ends_.sender;
  header.tcp.source_port = testing::kPort;
  header.tcp.destination_port = ends_.sender_port;
  header.tcp.sequence = sequence;
  header.tcp.acknowledgement = (flags & packet::kTcpAck) != 0 ? acknowledgement : 0;
  header.tcp.flags = flags;
  const bool syn = (flags & packet::kTcpSyn) != 0;
  header.tcp.window = draw_window(scales_ && !syn);
  Options options(header.tcp);
  if (syn) {
    if (mss_ != 0) options.put({2, 4, static_cast<std::uint8_t>(mss_ >> 8), static_cast<std::uint8_t>(mss_ & 0xff)});
    if (scales_) options.put({1, 3, 3, kScale});
    if (selective_) options.put({1, 1, 4, 2});
  }
  if (timestamps_) {
    options.put({1, 1, 8, 10});
    options.put32(77 + static_cast<std::uint32_t>(now.value / 1'000'000));
    options.put32(echo_);
  }
  if (!syn && selective_) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks;
    if (twice.second != 0) blocks.push_back(twice);  // RFC 2883
    const std::size_t most = timestamps_ ? 3 : 4;
    for (auto range = stored_.rbegin(); range != stored_.rend() && blocks.size() < most; ++range) {
      blocks.emplace_back(*range);
    }
    if (!fair_ && one_in(30) && blocks.size() < most) blocks.emplace_back(next_ + kFar, next_ + kFar + 500);
    if (!blocks.empty()) options.put({1, 1, 5, static_cast<std::uint8_t>(2 + 8 * blocks.size())});
    for (const auto& [begin, end] : blocks) {
      options.put32(number(begin));
      options.put32(number(end));
    }
  }
  const std::uint32_t headers = packet::tcp_headers_length(header);
  Frame bytes(headers + length);
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, length);
  static_cast<void>(packet::emit(header, bytes, length, sum));
  return bytes;
}

DrawnListener::Frame DrawnListener::acknowledgement(Nanos now, std::pair<std::uint64_t, std::uint64_t> twice) {
  const bool whole = fin_ && next_ == fin_at_;
  return frame(own_next(), number(next_ + (whole ? 1 : 0)), packet::kTcpAck, 0, twice, now);
}

void DrawnListener::reset(Nanos now, std::vector<Frame>& out) {
  // RST is believed at RCV.NXT alone (RFC 5961, 3): that is what the sender acknowledged last.
  const std::uint64_t at = own_acknowledged_ + (own_fin_acknowledged_ ? 1 : 0);
  out.push_back(
      frame(open_ ? own_number(at) : own_number(0), number(0), packet::kTcpRst | packet::kTcpAck, 0, {}, now));
  has_reset_ = closed_ = true;
}

std::string_view DrawnListener::hear_syn(const testing::Reply& segment, Nanos now, std::vector<Frame>& out) {
  if (known_ && segment.tcp().sequence != peer_initial_) return "a SYN has another number";
  if (segment.has(packet::kTcpAck) && segment.tcp().acknowledgement != own_number(0))
    return "a SYN acknowledges another";
  known_ = true;
  peer_initial_ = segment.tcp().sequence;
  echo_ = segment.timestamp;
  if (closed_ || one_in(20)) {
    // RFC 9293, 3.5.2, group 1.
    const bool ack = segment.has(packet::kTcpAck);
    const auto flags = static_cast<std::uint8_t>(packet::kTcpRst | (ack ? 0 : packet::kTcpAck));
    out.push_back(frame(ack ? segment.tcp().acknowledgement : 0, number(0), flags, 0, {}, now));
    has_reset_ = closed_ = true;
  } else if (crosses_ && !segment.has(packet::kTcpAck)) {
    out.push_back(frame(initial_, 0, packet::kTcpSyn, 0, {}, now));
  } else {
    out.push_back(frame(initial_, number(0), kAcceptance, 0, {}, now));
  }
  return {};
}

std::string_view DrawnListener::check(const testing::Reply& segment, std::span<const std::uint8_t> payload,
                                      std::int64_t offset) const {
  if (segment.has_timestamp != timestamps_) return "a segment has a timestamp, or none, against what was agreed";
  const auto own = static_cast<std::int32_t>(segment.tcp().acknowledgement - own_number(0));
  if (own < 0 || static_cast<std::uint64_t>(own) > own_sent_ + (own_fin_ ? 1 : 0)) {
    return "a segment acknowledges what was never sent";
  }
  if (payload.size() > largest_segment()) return "a segment is larger than the MSS or the MTU";
  if (offset < (payload.empty() ? -1 : 0)) return "a segment lies before the stream";
  const auto begin = static_cast<std::uint64_t>(offset);
  if (!payload.empty() && begin + payload.size() > edge_) return "a segment lies behind all windows";
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] != byte_at(stream_, begin + i)) return "a byte is wrong";
  }
  if (!fin_) return {};
  if (begin + payload.size() > fin_at_ + (payload.empty() ? 1 : 0)) return "a segment lies behind the end";
  if (segment.has(packet::kTcpFin) && begin + payload.size() != fin_at_) return "the end has moved";
  return {};
}

void DrawnListener::store(std::uint64_t begin, std::uint64_t end) {
  if (end <= next_) return;
  begin = std::max(begin, next_);
  for (auto range = stored_.begin(); range != stored_.end();) {
    if (range->first > end || range->second < begin) {
      ++range;
      continue;
    }
    begin = std::min(begin, range->first);
    end = std::max(end, range->second);
    range = stored_.erase(range);
  }
  if (begin == next_) {
    next_ = end;
  } else {
    stored_[begin] = end;
  }
}

std::string_view DrawnListener::hear(const testing::Reply& segment, std::span<const std::uint8_t> payload, Nanos now,
                                     std::vector<Frame>& out) {
  const packet::TcpHeader& tcp = segment.tcp();
  if (segment.has(packet::kTcpSyn)) return silent_ ? std::string_view() : hear_syn(segment, now, out);
  if (!known_) return {};
  const std::int64_t offset =
      static_cast<std::int64_t>(next_) + static_cast<std::int32_t>(tcp.sequence - number(next_));
  if (segment.has(packet::kTcpRst)) {
    // One of another number answers a forged segment, or is behind bytes that were lost: it would be challenged.
    if (offset == static_cast<std::int64_t>(next_)) closed_ = true;
    if (!silent_ && !closed_ && open_ && offset > static_cast<std::int64_t>(next_)) out.push_back(acknowledgement(now));
    return {};
  }
  if (const std::string_view wrong = check(segment, payload, offset); !wrong.empty()) return wrong;
  silent_ = silent_ || one_in(2000);
  if (silent_) return {};
  if (closed_) {
    if (often()) out.push_back(frame(tcp.acknowledgement, 0, packet::kTcpRst, 0, {}, now));
    has_reset_ = true;
    return {};
  }
  open_ = true;
  echo_ = segment.timestamp;
  const std::uint32_t own = tcp.acknowledgement - own_number(0);
  own_acknowledged_ = std::max<std::uint64_t>(own_acknowledged_, std::min<std::uint64_t>(own, own_sent_));
  own_fin_acknowledged_ = own_fin_acknowledged_ || (own_fin_ && own == own_sent_ + 1);
  const auto begin = static_cast<std::uint64_t>(offset);
  const std::uint64_t end = begin + payload.size();
  const bool again = !payload.empty() && end <= next_;
  if (!payload.empty()) store(begin, end);
  if (segment.has(packet::kTcpFin)) {
    fin_ = true;
    fin_at_ = end;
  }
  if (!fair_ && one_in(50)) stored_.clear();  // RFC 2018, 8
  if (one_in(240)) {
    reset(now, out);
    return {};
  }
  const bool asks = payload.empty() && offset < static_cast<std::int64_t>(next_);
  answer(asks || segment.has(packet::kTcpFin), again, {begin, end}, now, out);
  return {};
}

void DrawnListener::answer(bool must, bool again, std::pair<std::uint64_t, std::uint64_t> arrived, Nanos now,
                           std::vector<Frame>& out) {
  const bool plain = arrived.first == arrived.second;
  if (has_acknowledged_end() && !own_fin_acknowledged_ && often()) {
    send_own(now, out);
  } else if (must || (!plain && often())) {
    out.push_back(
        acknowledgement(now, again && random_.below(2) == 0 ? arrived : std::pair<std::uint64_t, std::uint64_t>()));
  }
}

/// Some of its own bytes, the oldest that are not acknowledged or new ones, or its FIN behind them.
void DrawnListener::send_own(Nanos now, std::vector<Frame>& out) {
  const bool whole = fin_ && next_ == fin_at_;
  const std::uint32_t acknowledged = number(next_ + (whole ? 1 : 0));
  const std::uint64_t from = often() ? own_acknowledged_ : own_sent_;
  if (from < own_total_) {
    const std::uint64_t most = std::min<std::uint64_t>(own_total_ - from, 500);
    const auto length = static_cast<std::uint32_t>(1 + random_.below(most));
    own_sent_ = std::max(own_sent_, from + length);
    out.push_back(frame(own_number(from), acknowledged, packet::kTcpAck, length, {}, now));
    return;
  }
  own_fin_ = true;
  out.push_back(frame(own_number(own_total_), acknowledged, kListenersEnd, 0, {}, now));
}

void DrawnListener::act(Nanos now, std::vector<Frame>& out) {
  const bool over = own_fin_acknowledged_ && has_acknowledged_end();
  if (!known_ || silent_ || closed_ || (calm_ && over)) return;
  if (!open_) {
    // Its SYN again, or a reset of a number that is not the sender's.
    if (random_.below(4) == 0) out.push_back(frame(initial_, number(0), kAcceptance, 0, {}, now));
    if (one_in(4))
      out.push_back(
          frame(own_number(kFar), number(1 + random_.below(1U << 31)), packet::kTcpRst | packet::kTcpAck, 0, {}, now));
    return;
  }
  const auto far = static_cast<std::uint32_t>(kFar + random_.below(1U << 30));
  switch (calm_ ? 1 : random_.below(12)) {
    case 0:
      if (random_.below(4) == 0) reset(now, out);
      return;
    case 1:
    case 2:
      if (own_total_ != 0 || has_acknowledged_end() || one_in(20)) return send_own(now, out);
      if (!calm_) out.push_back(acknowledgement(now));  // else it waits to be asked for its window
      return;
    case 3:  // a question whether the sender is there
      out.push_back(frame(own_next() - 1, number(next_), packet::kTcpAck, 0, {}, now));
      return;
    case 4:  // blind: RFC 5961
      out.push_back(frame(own_next() + 1 + static_cast<std::uint32_t>(random_.below(60'000)), number(next_),
                          packet::kTcpRst, 0, {}, now));
      return;
    case 5:
      out.push_back(frame(own_next() + static_cast<std::uint32_t>(random_.below(60'000)), number(next_),
                          packet::kTcpSyn, 0, {}, now));
      return;
    case 6:  // outside its window
      out.push_back(frame(own_next() + 70'000 + static_cast<std::uint32_t>(random_.below(1U << 30)), number(next_),
                          packet::kTcpAck, 10, {}, now));
      return;
    case 7:  // of what was never sent
      out.push_back(frame(own_next(), number(next_ + far), packet::kTcpAck, 0, {}, now));
      return;
    default:
      out.push_back(acknowledgement(now));
  }
}

}  // namespace warpline::stream
