// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>

#include "warpline/base/time/clock.h"

namespace warpline::capture {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;  // of all rings
constexpr std::size_t kLargestRing = std::size_t{4} << 20;
constexpr std::size_t kSmallestRing = std::size_t{256} << 10;
constexpr std::size_t kWriteSize = std::size_t{256} << 10;  // bytes that are written at once, if so many are there
constexpr std::size_t kRound = 4096;                        // packets between two looks at the clock
constexpr std::chrono::microseconds kNap{500};              // nobody makes a system call to wake the thread
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

/// While it lives, threads that are made take no signals but those of faults.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void Capture::WallClock::adjust() {
  const std::uint64_t ticks = ticks_now();
  if (ticks_ != 0 && ticks - ticks_ < static_cast<std::uint64_t>(ticks_per_second())) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  ticks_ = ticks;
  nanos_ = static_cast<std::int64_t>(now.tv_sec) * static_cast<std::int64_t>(kNanosPerSecond) + now.tv_nsec;
}

std::uint64_t Capture::WallClock::nanos_at(std::uint64_t ticks) const {
  const auto since = static_cast<double>(static_cast<std::int64_t>(ticks - ticks_));
  return static_cast<std::uint64_t>(nanos_ + static_cast<std::int64_t>(since * 1e9 / ticks_per_second()));
}

Capture::Capture(CaptureFiles files, const std::vector<CaptureInterface>& interfaces) : files_(std::move(files)) {
  std::uint16_t ports = 0;
  for (const CaptureInterface& interface : interfaces) ports = std::max<std::uint16_t>(ports, interface.port + 1U);
  interface_of_port_.resize(ports);
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    interface_of_port_[interfaces[i].port] = static_cast<std::uint16_t>(i);
  }
  blocks_.reserve(2 * kWriteSize);
}

Result<std::unique_ptr<Capture>> Capture::open(const CaptureSettings& settings,
                                               const std::vector<CaptureInterface>& interfaces, std::size_t sources,
                                               std::string_view application) {
  WARPLINE_TRY(const PacketFilter filter, PacketFilter::compile(settings.filter));
  std::vector<std::uint8_t> head;
  append_section_header(head, application);
  for (const CaptureInterface& interface : interfaces) append_interface(head, interface.name, settings.snaplen);
  WARPLINE_TRY(CaptureFiles files, CaptureFiles::open(settings.file, settings.limit, std::move(head)));
  std::unique_ptr<Capture> capture(new Capture(std::move(files), interfaces));
  const std::size_t memory = std::clamp(kMemory / std::max<std::size_t>(sources, 1), kSmallestRing, kLargestRing);
  for (std::size_t i = 0; i < sources; ++i) {
    capture->sources_.push_back(std::make_unique<CaptureSource>(settings, filter, memory));
  }
  capture->clock_.adjust();
  return capture;
}

void Capture::start() {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "capture");
}

void Capture::finish() {
  ends_soon_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void Capture::run() {
  for (;;) {
    // Read in this order: what sources took before the end was ordered is seen behind it.
    const bool last = ends_soon_.load(std::memory_order_acquire);
    const bool wrote = write_some();
    if (wrote) continue;
    if (last) return;
    std::this_thread::sleep_for(kNap);
  }
}

CaptureSource* Capture::oldest() {
  CaptureSource* found = nullptr;
  std::uint64_t ticks = 0;
  for (const auto& source : sources_) {
    const CapturedPacket* const packet = source->ring().front();
    if (packet == nullptr || (found != nullptr && packet->ticks >= ticks)) continue;
    found = source.get();
    ticks = packet->ticks;
  }
  return found;
}

bool Capture::write_some() {
  clock_.adjust();
  std::size_t taken = 0;
  for (; taken < kRound && blocks_.size() < kWriteSize; ++taken) {
    CaptureSource* const source = oldest();
    if (source == nullptr) break;
    add(*source->ring().front());
    source->ring().pop();
  }
  flush();
  return taken != 0;
}

void Capture::add(const CapturedPacket& packet) {
  const PacketBlock block{.interface = interface_of_port_[packet.port],
                          .time_ns = clock_.nanos_at(packet.ticks),
                          .length = packet.length,
                          .bytes = {packet.bytes(), packet.captured},
                          .direction = packet.direction,
                          .queue = packet.queue,
                          .comment = comments()[static_cast<std::size_t>(packet.verdict)]};
  if (blocks_.size() + size_of(block) > files_.room()) {
    flush();
    if (size_of(block) > files_.room()) overwritten_.add(files_.turn());
  }
  append_packet(blocks_, block);
  ends_.push_back(blocks_.size());
  pending_.push_back({packet.verdict, packet.captured});
}

void Capture::flush() {
  if (pending_.empty()) return;
  const std::size_t written = files_.append(blocks_, ends_);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    (i < written ? written_ : unwritten_).add(pending_[i].verdict);
    if (i < written) bytes_.add(pending_[i].bytes);
  }
  blocks_.clear();
  ends_.clear();
  pending_.clear();
}

CaptureTotals Capture::totals() const {
  CaptureTotals totals;
  totals.packets = written_.total();
  totals.bytes = bytes_.get();
  totals.write_failed = unwritten_.total();
  totals.overwritten = overwritten_.get();
  for (const auto& source : sources_) {
    totals.ring_full += source->left_out().total();
    totals.filtered += source->filtered();
  }
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    if (!is_drop(verdict)) continue;
    totals.drops[i] = written_.get(verdict);
    totals.left_out_drops[i] = unwritten_.get(verdict);
    for (const auto& source : sources_) totals.left_out_drops[i] += source->left_out().get(verdict);
  }
  if (!thread_.joinable()) {
    totals.files = files_.paths();
    totals.failure = files_.failure();
  }
  return totals;
}

}  // namespace warpline::capture
