// SPDX-License-Identifier: Apache-2.0
#include "sim/applications/stream_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "sim/chance.h"
#include "sim/content.h"
#include "sim/host.h"

namespace warpline::sim {
namespace {

using message::MessageStatus;
using rpc::StreamRead;

constexpr std::int64_t kLongestPatience = 5'000'000;
constexpr std::uint16_t kAnswered = 77;

}  // namespace

void StreamPart::start(Host& host) {
  host_ = &host;
  if (!host.config().endpoint.streams) return;
  auto made =
      rpc::CallStreams::make({.streams = plan_.places, .window = plan_.window}, host.config().endpoint, nullptr);
  if (!made.ok()) return ledger_.fail(made.error().message());
  streams_ = std::move(made).value();
  streams_->take_by([this](rpc::CallStream stream) { take(std::move(stream)); });
}

void StreamPart::crash() {
  for (const End& end : own_) calls_[end.call].crashed = true;
  own_.clear();
  served_.clear();
  streams_.reset();
}

bool StreamPart::handle(const message::MessageEvent& event) {
  return streams_ && streams_->handle(host_->endpoint(), event, host_->clock());
}

std::vector<std::uint8_t> StreamPart::piece(std::uint32_t call, bool up, std::uint32_t number) const {
  const std::uint64_t seed = mix64(std::uint64_t{call} << 32 | number << 1 | static_cast<std::uint32_t>(up));
  std::vector<std::uint8_t> bytes(seed % (seed % 4 == 0 ? plan_.longest + 1 : 100));
  fill_content(bytes.data(), static_cast<std::uint32_t>(bytes.size()), seed);
  return bytes;
}

void StreamPart::open_some(message::SessionId session, std::uint32_t to, bool own_session) {
  if (!streams_ || left_ == 0 || own_.size() >= plan_.at_once) return;
  const auto number = static_cast<std::uint32_t>(calls_.size());
  SentStream call{.from = host_->index(), .to = to, .own_session = own_session};
  call.up = static_cast<std::uint32_t>(between(random_, 0, plan_.pieces));
  call.down = static_cast<std::uint32_t>(between(random_, 0, plan_.pieces));
  if (chance(random_, 0.15)) call.manner = SentStream::Manner::answers_early;
  if (chance(random_, 0.1)) call.manner = SentStream::Manner::leaves;
  call.may_expire = chance(random_, plan_.deadline);
  std::array<std::uint8_t, 4> request;
  std::memcpy(request.data(), &number, request.size());
  rpc::OpenedStream opened =
      streams_->open({.session = session,
                      .request = request,
                      .code = static_cast<std::uint16_t>(number),
                      .patience = call.may_expire ? Nanos{between(random_, 1'000, kLongestPatience)} : message::kNever},
                     host_->clock());
  if (opened.status != message::CallStatus::ok) return;  // all places are taken, by those of others perhaps
  End end{.stream = std::move(opened.stream), .call = number};
  call.cancelled = chance(random_, plan_.cancel);
  if (call.cancelled) end.cancel_after = static_cast<std::uint32_t>(between(random_, 0, call.up));
  calls_.push_back(call);
  own_.push_back(std::move(end));
  --left_;
}

void StreamPart::take(rpc::CallStream stream) {
  std::uint32_t number = ~0U;
  if (stream.request().size() == 4) std::memcpy(&number, stream.request().data(), 4);
  if (number >= calls_.size() || stream.code() != static_cast<std::uint16_t>(number))
    return ledger_.fail(fmt::format("host {}: a call in pieces that nobody opened", host_->index()));
  SentStream& call = calls_[number];
  if (++call.taken > 1) ledger_.fail(fmt::format("call in pieces {} was taken {} times", number, call.taken));
  if (call.to != host_->index()) ledger_.fail(fmt::format("call in pieces {} came to host {}", number, host_->index()));
  served_.push_back({.stream = std::move(stream), .call = number});
}

bool StreamPart::read(End& end, bool up) {
  std::span<const std::uint8_t> bytes;
  for (std::uint32_t i = 0; i < plan_.pace; ++i) {
    if (end.stream.try_read(bytes) != StreamRead::piece) return false;
    if (!std::ranges::equal(bytes, piece(end.call, up, end.read))) {
      ledger_.fail(fmt::format("host {}: piece {} {} of call {} differs, of {} B", host_->index(), end.read,
                               up ? "up" : "down", end.call, bytes.size()));
    }
    ++end.read;
  }
  return true;
}

bool StreamPart::write(End& end, std::uint32_t pieces, bool up) {
  while (end.written < pieces && end.stream.try_write(piece(end.call, up, end.written))) ++end.written;
  return end.written == pieces;
}

/// Returns whether it is over.
bool StreamPart::work_at_own(End& end) {
  SentStream& call = calls_[end.call];
  if (write(end, call.up, true) && !std::exchange(end.all_written, true)) end.stream.end_writing();
  if (call.cancelled && end.read + end.written >= end.cancel_after) end.stream.cancel();
  if (!end.stream.ended() || read(end, false)) return false;
  // Whatever had arrived was read.
  call.result = end.stream.wait();
  ++call.ended;
  if (call.result.status == MessageStatus::ok) {
    const auto wrong = [&](std::string_view what) {
      ledger_.fail(fmt::format("call in pieces {} of host {}: {}", end.call, call.from, what));
    };
    if (end.read != call.down) wrong(fmt::format("{} pieces instead of {}", end.read, call.down));
    if (call.result.code != kAnswered || call.result.length != 4 || std::memcmp(call.result.data, &end.call, 4) != 0) {
      wrong("its answer differs");
    }
  }
  call.result.data = nullptr;
  return true;
}

bool StreamPart::work_at_served(End& end) {
  const SentStream& call = calls_[end.call];
  if (end.stream.ended()) return true;
  switch (call.manner) {
    case SentStream::Manner::leaves:
      (void)read(end, true);
      return end.read >= call.up / 2;
    case SentStream::Manner::answers_early:
      if (end.all_written || !write(end, call.down, false)) return false;
      end.all_written = end.stream.finish(kAnswered, end.stream.request());
      return true;  // its answer and pieces go on without it
    case SentStream::Manner::answers_all:
      (void)read(end, true);
      if (!write(end, call.down, false) || end.read != call.up) return false;
      (void)end.stream.finish(kAnswered, end.stream.request());
      return true;
  }
  return false;
}

bool StreamPart::work() {
  if (!streams_) return false;
  const auto turn = [&] {
    for (End& end : own_) {
      if (!end.stream.ended()) (void)read(end, false);
    }
    std::erase_if(own_, [&](End& end) { return work_at_own(end); });
    std::erase_if(served_, [&](End& end) { return work_at_served(end); });
  };
  turn();
  (void)streams_->advance(host_->endpoint(), true, host_->clock());
  turn();  // what it has found out
  (void)streams_->advance(host_->endpoint(), true, host_->clock());
  return !own_.empty() || !served_.empty() || !all_free();
}

void StreamPart::check() {
  if (!streams_) return;
  const rpc::CallStreamCounters& counters = streams_->counters();
  for (const auto& [what, counter] :
       {std::pair{"malformed", &counters.malformed}, std::pair{"beyond their credit", &counters.beyond_credit},
        std::pair{"repeated", &counters.repeated}, std::pair{"of broken streams", &counters.broken}}) {
    if (counter->get() != 0) ledger_.fail(fmt::format("host {}: {} pieces {}", host_->index(), counter->get(), what));
  }
}

std::string StreamPart::state() const {
  std::string text = fmt::format("host {}: {} calls in pieces to open, {} own, {} served, {} places free",
                                 host_ == nullptr ? 0 : host_->index(), left_, own_.size(), served_.size(),
                                 streams_ ? streams_->available() : 0);
  for (const End& end : own_) text += fmt::format("; own {} read {} written {}", end.call, end.read, end.written);
  for (const End& end : served_) text += fmt::format("; served {} read {} written {}", end.call, end.read, end.written);
  return text;
}

void check_ended(const SentStream& call, std::uint32_t number, bool peers_lost, bool drained, bool strict,
                 Ledger& ledger) {
  if (call.crashed) return;
  const auto wrong = [&](std::string_view what) {
    ledger.fail(fmt::format("call in pieces {} of host {} to {}, ended as {}: {}", number, call.from, call.to,
                            message::name(call.result.status), what));
  };
  if (call.ended != 1) return wrong(fmt::format("ended {} times", call.ended));
  const bool taken = call.taken != 0;
  switch (call.result.status) {
    case MessageStatus::ok:
      if (!taken) wrong("was never taken");
      break;
    case MessageStatus::refused:
      // Also where all places of the other end were taken.
      if (taken && call.manner != SentStream::Manner::leaves && !call.may_expire) wrong("without reason");
      break;
    case MessageStatus::deadline:
      if (!call.may_expire) wrong("without one");
      break;
    case MessageStatus::cancelled:
      if (!call.cancelled) wrong("by nobody");
      break;
    case MessageStatus::peer_lost:
      if (!peers_lost && !drained) wrong("though nothing happened to the peer");
      if (!peers_lost && strict && call.own_session && taken) wrong("was taken by a server that drained");
      break;
    case MessageStatus::too_long:
      wrong("which it cannot be");
  }
}

}  // namespace warpline::sim
