// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "warpline/base/time/clock.h"

namespace warpline::capture {
namespace {

constexpr std::size_t kWriteSize = std::size_t{256} << 10;  // bytes that are written at once, if so many are there
constexpr std::size_t kRound = 4096;                        // packets between two looks at the clock
constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

/// The comments of all verdicts, made once: "no_route: no route leads to its destination".
const std::vector<std::string>& comments() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (std::size_t i = 0; i < kVerdicts; ++i) {
      const auto verdict = static_cast<Verdict>(i);
      made.push_back(is_drop(verdict) ? fmt::format("{}: {}", name(verdict), meaning(verdict)) : std::string());
    }
    return made;
  }();
  return all;
}

}  // namespace

void CaptureWriter::WallClock::adjust() {
  const std::uint64_t ticks = ticks_now();
  if (ticks_ != 0 && ticks - ticks_ < static_cast<std::uint64_t>(ticks_per_second())) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  ticks_ = ticks;
  nanos_ = static_cast<std::int64_t>(now.tv_sec) * static_cast<std::int64_t>(kNanosPerSecond) + now.tv_nsec;
}

std::uint64_t CaptureWriter::WallClock::nanos_at(std::uint64_t ticks) const {
  const auto since = static_cast<double>(static_cast<std::int64_t>(ticks - ticks_));
  return static_cast<std::uint64_t>(nanos_ + static_cast<std::int64_t>(since * 1e9 / ticks_per_second()));
}

CaptureWriter::CaptureWriter(CaptureFiles files, const std::vector<CaptureInterface>& interfaces, std::uint32_t snaplen)
    : files_(std::move(files)), snaplen_(snaplen) {
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    const std::size_t port = interfaces[i].port;
    if (port >= interface_of_port_.size()) interface_of_port_.resize(port + 1, kNone);
    interface_of_port_[port] = static_cast<std::uint16_t>(i);
  }
  blocks_.reserve(2 * kWriteSize);
  clock_.adjust();
}

Result<CaptureWriter> CaptureWriter::open(const CaptureSettings& settings,
                                          const std::vector<CaptureInterface>& interfaces,
                                          std::string_view application) {
  std::vector<std::uint8_t> head;
  append_section_header(head, application);
  for (const CaptureInterface& interface : interfaces) append_interface(head, interface.name, settings.snaplen);
  WARPLINE_TRY(CaptureFiles files, CaptureFiles::open(settings.file, settings.limit, std::move(head)));
  return CaptureWriter(std::move(files), interfaces, settings.snaplen);
}

void CaptureWriter::take_from(const CaptureRings& rings) {
  for (std::uint32_t i = 0; i < rings.count(); ++i) rings_.push_back(rings.output(i));
}

CaptureRingOutput* CaptureWriter::oldest() {
  CaptureRingOutput* found = nullptr;
  std::uint64_t ticks = 0;
  for (CaptureRingOutput& ring : rings_) {
    const CapturedPacket* const packet = ring.front();
    if (packet == nullptr || (found != nullptr && packet->ticks >= ticks)) continue;
    found = &ring;
    ticks = packet->ticks;
  }
  return found;
}

std::size_t CaptureWriter::write_some(std::size_t most) {
  clock_.adjust();
  std::size_t taken = 0;
  for (; taken < std::min(most, kRound) && blocks_.size() < kWriteSize; ++taken) {
    CaptureRingOutput* const ring = oldest();
    if (ring == nullptr) break;
    add(*ring->front());
    ring->pop();
  }
  flush();
  return taken;
}

void CaptureWriter::add(const CapturedPacket& in_ring) {
  const CapturedPacket packet = in_ring;  // once, before it is looked at
  const std::uint16_t interface = packet.port < interface_of_port_.size() ? interface_of_port_[packet.port] : kNone;
  const auto verdict = static_cast<std::size_t>(packet.verdict);
  if (interface == kNone || verdict >= kVerdicts || packet.captured > snaplen_) return;
  const PacketBlock block{.interface = interface,
                          .time_ns = clock_.nanos_at(packet.ticks),
                          .length = packet.length,
                          .bytes = {in_ring.bytes(), packet.captured},
                          .direction = packet.direction,
                          .queue = packet.queue,
                          .comment = comments()[verdict]};
  const std::size_t size = size_of(block);
  if (blocks_.size() + filler_before(size) + size > files_.room()) {
    flush();
    if (filler_before(size) + size > files_.room()) counts_->overwritten.add(files_.turn());
  }
  if (const std::size_t filler = filler_before(size); filler != 0) append_filler(blocks_, filler);
  append_packet(blocks_, block);
  ends_.push_back(blocks_.size());
  pending_.push_back({packet.verdict, packet.captured});
}

std::size_t CaptureWriter::filler_before(std::size_t size) const {
  const std::size_t left = CaptureFiles::kPiece - (files_.size() + blocks_.size()) % CaptureFiles::kPiece;
  const bool fits = left == size || left >= size + kLeastFiller;
  return fits || left < kLeastFiller || left == CaptureFiles::kPiece ? 0 : left;
}

void CaptureWriter::flush() {
  if (pending_.empty()) return;
  const std::size_t written = files_.append(blocks_, ends_);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    (i < written ? counts_->written : counts_->unwritten).add(pending_[i].verdict);
    if (i < written) counts_->bytes.add(pending_[i].bytes);
  }
  blocks_.clear();
  ends_.clear();
  pending_.clear();
}

CaptureTotals CaptureWriter::totals(const SourceTotals& sources, bool ended) const {
  CaptureTotals totals;
  totals.packets = counts_->written.total();
  totals.bytes = counts_->bytes.get();
  totals.write_failed = counts_->unwritten.total();
  totals.overwritten = counts_->overwritten.get();
  totals.filtered = sources.filtered;
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    totals.ring_full += sources.left_out[i];
    if (!is_drop(verdict)) continue;
    totals.drops[i] = counts_->written.get(verdict);
    totals.left_out_drops[i] = counts_->unwritten.get(verdict) + sources.left_out[i];
  }
  if (ended) {
    totals.files = files_.paths();
    totals.failure = files_.failure();
  }
  return totals;
}

}  // namespace warpline::capture
