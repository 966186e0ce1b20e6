// SPDX-License-Identifier: Apache-2.0
#include "vnic/faults/faults.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "vnic/faults/ecn.h"
#include "warpline/base/units.h"

namespace warpline::vnic {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
__extension__ using Wide = unsigned __int128;

bool strikes_frames(const FaultConfig& config) {
  return config.loss > 0 || config.burst_loss_enter > 0 || config.duplicate > 0 || config.reorder > 0 ||
         config.corrupt > 0 || config.truncate > 0 || config.delay_nanos != 0 || config.jitter_nanos != 0 ||
         config.bits_per_s != 0 || config.flap_frames != 0 || config.reset_frames != 0;
}

}  // namespace

Faults::Faults(const FaultConfig& config, std::uint64_t seed) : held_(kMaxReorderDepth) {
  std::uint64_t stream = seed;
  for (std::uint64_t& begin : streams_) begin = mix64(stream += kGolden);
  configure(config);
}

void Faults::configure(const FaultConfig& config) {
  if (config.duplicate > 0 && copy_bytes_ == nullptr) {
    copy_bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(kMaxFrame);
  }
  if (config.reorder > 0 && held_bytes_ == nullptr) {
    held_bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(std::size_t{kMaxReorderDepth} * kMaxFrame);
  }
  if (config.bits_per_s != config_.bits_per_s && line_rest_ != 0) {
    // The fraction counts in the old rate; what is queued leaves at that rate.
    line_rest_ = 0;
    ++line_free_nanos_;
  }
  if (config.flap_frames != config_.flap_frames || config.reset_frames != config_.reset_frames) {
    flap_at_ = reset_at_ = 0;
    was_reset_.store(false, std::memory_order_relaxed);
    link_up_.store(true, std::memory_order_relaxed);
  }
  config_ = config;
  config_.reorder_depth = std::clamp(config.reorder_depth, 1U, kMaxReorderDepth);
  active_ = strikes_frames(config);
  if (config.burst_loss_enter == 0) bad_state_ = false;
  stall_.store(config.stall, std::memory_order_relaxed);
  rx_out_.store(config.rx_out, std::memory_order_relaxed);
  tx_full_.store(config.tx_full, std::memory_order_relaxed);
}

/// A number for this frame and purpose, and no other: SplitMix64's, at the frame's place in the purpose's stream.
std::uint64_t Faults::draw(Draw what) const {
  return mix64(streams_[static_cast<std::size_t>(what)] + (frames_ * 2 + copy_) * kGolden);
}

std::uint64_t Faults::draw_below(Draw what, std::uint64_t bound) const {
  return static_cast<std::uint64_t>((Wide{draw(what)} * bound) >> 64);
}

bool Faults::happens(Draw what, double probability) const {
  return probability > 0 && static_cast<double>(draw(what) >> 11) * 0x1p-53 < probability;
}

bool Faults::lose(Counters& counts) {
  if (config_.reset_frames != 0 && ++reset_at_ > config_.reset_frames) {
    was_reset_.store(true, std::memory_order_relaxed);
    link_up_.store(false, std::memory_order_relaxed);
    counts.add(Count::fault_reset);
    return true;
  }
  if (config_.burst_loss_enter > 0) {
    const double turn = bad_state_ ? config_.burst_loss_leave : config_.burst_loss_enter;
    if (happens(Draw::burst_turn, turn)) bad_state_ = !bad_state_;
  }
  if (config_.flap_frames != 0) {
    const bool up = flap_at_ < config_.flap_frames;
    if (++flap_at_ >= config_.flap_frames + config_.flap_lost) flap_at_ = 0;
    link_up_.store(flap_at_ < config_.flap_frames, std::memory_order_relaxed);
    if (!up) {
      counts.add(Count::fault_flap);
      return true;
    }
  }
  const bool lost = happens(Draw::loss, config_.loss) || (bad_state_ && happens(Draw::burst_loss, config_.burst_loss));
  if (lost) counts.add(Count::fault_loss);
  return lost;
}

void Faults::pass(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos, FrameSink& sink,
                  Counters& counts) {
  if (!lose(counts)) {
    const bool twice = length <= kMaxFrame && happens(Draw::duplicate, config_.duplicate);
    if (twice) std::memcpy(copy_bytes_.get(), frame, length);
    one(frame, length, now_nanos, sink, counts);
    if (twice) {
      counts.add(Count::fault_duplicate);
      copy_ = 1;
      one(copy_bytes_.get(), length, now_nanos, sink, counts);
      copy_ = 0;
    }
  }
  ++frames_;
}

/// All that happens to a frame that is not lost, and to its duplicate.
void Faults::one(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos, FrameSink& sink,
                 Counters& counts) {
  assert(length > 0);
  if (length > 1 && happens(Draw::truncate, config_.truncate)) {
    length = 1 + static_cast<std::uint32_t>(draw_below(Draw::truncate_at, length - 1));
    counts.add(Count::fault_truncate);
  }
  if (happens(Draw::corrupt, config_.corrupt)) {
    const std::uint64_t bit = draw_below(Draw::corrupt_at, std::uint64_t{length} * 8);
    frame[bit / 8] = static_cast<std::uint8_t>(frame[bit / 8] ^ 1U << (bit % 8));
    counts.add(Count::fault_corrupt);
  }
  std::uint64_t time = now_nanos;
  if (config_.bits_per_s != 0 && !limit(frame, length, time, counts)) return;
  time += config_.delay_nanos;
  if (config_.jitter_nanos != 0) time += draw_below(Draw::jitter, config_.jitter_nanos + 1);
  if (config_.reorder > 0 || held() != 0) {
    order(frame, length, time, sink, counts);
  } else {
    sink.deliver(frame, length, time);
  }
}

std::uint64_t Faults::queued_bytes(std::uint64_t now_nanos) const {
  if (config_.bits_per_s == 0 || line_free_nanos_ < now_nanos) return 0;
  const Wide bits_nanos = Wide{line_free_nanos_ - now_nanos} * config_.bits_per_s + line_rest_;
  constexpr std::uint64_t kByte = 8 * kNanosPerSecond;
  return static_cast<std::uint64_t>((bits_nanos + kByte - 1) / kByte);
}

bool Faults::limit(std::uint8_t* frame, std::uint32_t length, std::uint64_t& time_nanos, Counters& counts) {
  const std::uint64_t queued = queued_bytes(time_nanos);
  const std::uint64_t bytes = length + kLayer1Overhead;
  if (queued + bytes > config_.queue_bytes) {
    counts.add(Count::tx_queue_full);
    return false;
  }
  if (config_.ecn_bytes != 0 && queued >= config_.ecn_bytes && mark_congestion(frame, length)) {
    counts.add(Count::fault_ecn_marked);
  }
  if (queued == 0) {
    line_free_nanos_ = time_nanos;
    line_rest_ = 0;
  }
  // In units of 1 / bits_per_s nanoseconds, so that no fraction is ever lost.
  const Wide transmission = Wide{bytes} * 8 * kNanosPerSecond + line_rest_;
  line_free_nanos_ += static_cast<std::uint64_t>(transmission / config_.bits_per_s);
  line_rest_ = static_cast<std::uint64_t>(transmission % config_.bits_per_s);
  time_nanos = line_free_nanos_ + (line_rest_ != 0 ? 1 : 0);
  return true;
}

/// Frames that come to this stage are counted, held back or not: a frame is at most reorder_depth places late, and no
/// more are ever held back.
void Faults::order(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos, FrameSink& sink,
                   Counters& counts) {
  ++ordered_;
  if (length <= kMaxFrame && held() < kMaxReorderDepth && happens(Draw::reorder, config_.reorder)) {
    std::memcpy(held_bytes(held_end_), frame, length);
    held_[held_end_ % kMaxReorderDepth] = {ordered_ + config_.reorder_depth, release_nanos, length};
    ++held_end_;
    counts.add(Count::fault_reorder);
  } else {
    sink.deliver(frame, length, release_nanos);
  }
  while (held() != 0 && held_[held_begin_ % kMaxReorderDepth].due <= ordered_) deliver_oldest(release_nanos, sink);
}

void Faults::deliver_oldest(std::uint64_t earliest_nanos, FrameSink& sink) {
  const Held& oldest = held_[held_begin_ % kMaxReorderDepth];
  sink.deliver(held_bytes(held_begin_), oldest.length, std::max(oldest.release_nanos, earliest_nanos));
  ++held_begin_;
}

void Faults::flush(std::uint64_t now_nanos, FrameSink& sink) {
  while (held() != 0) deliver_oldest(now_nanos, sink);
}

}  // namespace warpline::vnic
