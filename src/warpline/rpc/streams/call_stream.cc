// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/streams/call_stream.h"

#include <algorithm>
#include <cstring>

#include "warpline/rpc/streams/call_streams.h"

namespace warpline::rpc {

CallStream& CallStream::operator=(CallStream&& other) noexcept {
  if (this == &other) return *this;
  close();
  streams_ = std::exchange(other.streams_, nullptr);
  place_ = other.place_;
  return *this;
}

message::SessionId CallStream::session() const { return place_->session; }
std::uint16_t CallStream::code() const { return place_->code; }
std::span<const std::uint8_t> CallStream::request() const { return place_->request; }
std::span<const std::uint8_t> CallStream::metadata() const { return place_->metadata; }
Nanos CallStream::deadline() const { return place_->deadline; }

void CallStream::listen(const StreamNews& news) { place_->listener = news; }

bool CallStream::try_write(std::span<const std::uint8_t> piece) {
  constexpr std::uint32_t kAlign = 8;
  constexpr std::uint32_t kHead = packet::MessageStreamHead::kLength;
  CallStreamPlace& place = *place_;
  const bool over = (place.orders.load(std::memory_order_relaxed) & (kStreamEndWriting | kStreamFinish)) != 0;
  if (piece.size() > kMaxPieceBytes || over || ended()) return false;
  const auto length = static_cast<std::uint32_t>(kHead + piece.size());
  const std::uint64_t at = place.write_end % place.out.size();
  const std::uint64_t skipped = at + length > place.out.size() ? place.out.size() - at : 0;
  const std::uint64_t begin = place.write_end + skipped;
  const std::uint64_t end = begin + (length + kAlign - 1) / kAlign * kAlign;
  if (end - place.out_end.load(std::memory_order_acquire) > place.out.size()) return false;
  const auto to = static_cast<std::uint32_t>(begin % place.out.size());
  if (!piece.empty()) std::memcpy(place.out.data() + to + kHead, piece.data(), piece.size());
  if (!place.written.push({end, to, length})) return false;
  place.write_end = end;
  streams_->note(place);
  return true;
}

template <typename Try>
void CallStream::sleep_until(const Try& done) {
  while (true) {
    const std::uint32_t seen = place_->news.load(std::memory_order_acquire);
    if (done() || streams_->in_callback()) return;
    place_->news.wait(seen, std::memory_order_acquire);
  }
}

bool CallStream::write(std::span<const std::uint8_t> bytes) {
  do {
    const std::span<const std::uint8_t> piece = bytes.first(std::min<std::size_t>(bytes.size(), kMaxPieceBytes));
    bool wrote = false;
    const std::uint32_t over = kStreamEndWriting | kStreamFinish;
    sleep_until([&] {
      wrote = try_write(piece);
      return wrote || ended() || (place_->orders.load(std::memory_order_relaxed) & over) != 0;
    });
    if (!wrote) return false;
    bytes = bytes.subspan(piece.size());
  } while (!bytes.empty());
  return true;
}

void CallStream::end_writing() {
  place_->orders.fetch_or(kStreamEndWriting, std::memory_order_release);
  streams_->note(*place_);
}

bool CallStream::finish(std::uint16_t code, std::span<const std::uint8_t> answer) {
  if (answer.size() > kMaxAnswerBytes) return false;
  if ((place_->orders.load(std::memory_order_relaxed) & kStreamFinish) != 0) return true;
  place_->answer_code = code;
  std::copy(answer.begin(), answer.end(), place_->answer.begin() + packet::MessageStreamHead::kLength);
  place_->answer_length = packet::MessageStreamHead::kLength + static_cast<std::uint32_t>(answer.size());
  place_->orders.fetch_or(kStreamFinish, std::memory_order_release);
  streams_->note(*place_);
  return true;
}

StreamRead CallStream::try_read(std::span<const std::uint8_t>& piece) {
  CallStreamPlace& place = *place_;
  if (std::exchange(place.reading, false)) {
    place.given.fetch_add(1, std::memory_order_release);
    place.given_cost += place.reading_cost;
    // Less is held back than keeps a piece of the longest from being paid for.
    if (place.given_cost >= place.out.size() / 4) {
      place.given_cost = 0;
      streams_->note(place);
    }
  }
  // What came before the end is seen when the end is.
  const bool all = (place.known.load(std::memory_order_acquire) & kStreamAllRead) != 0;
  CallStreamPlace::Read read;
  if (!place.arrived.pop(read)) return all ? StreamRead::end : StreamRead::nothing;
  place.reading = true;
  place.reading_cost = read.length + packet::MessageStreamHead::kLength + kPieceCost;
  piece = {read.data, read.length};
  return StreamRead::piece;
}

bool CallStream::read(std::span<const std::uint8_t>& piece) {
  StreamRead found = StreamRead::nothing;
  sleep_until([&] {
    found = try_read(piece);
    return found != StreamRead::nothing;
  });
  return found == StreamRead::piece;
}

bool CallStream::ended() const { return (place_->known.load(std::memory_order_acquire) & kStreamEnded) != 0; }

const CallResult& CallStream::wait() {
  static constexpr CallResult kNotNow{.status = message::MessageStatus::cancelled,
                                      .reach = message::Reach::maybe_handled};
  sleep_until([&] { return ended(); });
  return ended() ? place_->result : kNotNow;
}

void CallStream::cancel() {
  place_->orders.fetch_or(kStreamCancel, std::memory_order_release);
  streams_->note(*place_);
}

void CallStream::close() {
  CallStreams* const streams = std::exchange(streams_, nullptr);
  if (streams == nullptr) return;
  place_->orders.fetch_or(kStreamClose, std::memory_order_release);
  streams->note(*place_);
}

}  // namespace warpline::rpc
