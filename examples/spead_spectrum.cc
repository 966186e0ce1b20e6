// SPDX-License-Identifier: Apache-2.0
// A spectrometer of SPEAD packets: spead_spectrum --packets N PORT... Each heap of 16 KiB, 16 packets of 1 KiB of
// signed 16-bit samples, becomes a frame; each 2048 samples of it a spectrum, by FFTW; and all spectra of a frame a
// line: how many there are, how many were left out because a packet of theirs was lost, and the channel that is the
// strongest.
#include <fftw3.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "warpline/flow/frame_assembler.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/runtime/stop.h"

using namespace warpline;

namespace {

constexpr char kDescription[] = "format=spead,packets=16,payload=1024";
constexpr std::size_t kPacketsPerFrame = 16;
constexpr std::size_t kPacketSamples = 1024 / sizeof(std::int16_t);
constexpr std::size_t kSamples = 2048;
constexpr std::size_t kPackets = kSamples / kPacketSamples;

/// Room for a window, and for frames that the consumer has.
struct alignas(flow::FrameLayout::kAlignment) FrameMemory {
  std::array<std::byte, 256 << 10> bytes;
};

/// Gives each packet to the assembler, on the lcore that received it. While the consumer has all frames the packet
/// waits, and those behind it at the port.
struct Assemble {
  static constexpr bool kStateless = true;

  flow::FrameAssembler* assembler;

  Verdict operator()(FrameRef packet) const {
    while (assembler->take(packet, 0) == flow::Placement::no_frame) std::this_thread::yield();
    return Verdict::forward;
  }
  void merge(const Assemble&) {}
};

/// Sums up the power of the spectra of one frame after the other.
class Spectrometer {
 public:
  Spectrometer()
      : samples_(fftwf_alloc_real(kSamples)),
        channels_(fftwf_alloc_complex(kSamples / 2 + 1)),
        plan_(fftwf_plan_dft_r2c_1d(kSamples, samples_, channels_, FFTW_ESTIMATE)) {}
  Spectrometer(const Spectrometer&) = delete;
  Spectrometer& operator=(const Spectrometer&) = delete;
  ~Spectrometer() {
    fftwf_destroy_plan(plan_);
    fftwf_free(channels_);
    fftwf_free(samples_);
  }

  void look_at(const flow::Frame& frame) {
    std::array<double, kSamples / 2 + 1> power{};
    int spectra = 0;
    int left_out = 0;
    for (std::size_t first = 0; first < kPacketsPerFrame; first += kPackets) {
      // What lies where a packet is missing is of an earlier frame.
      if (std::memchr(frame.mask + first, 0, kPackets) != nullptr) {
        ++left_out;
        continue;
      }
      transform(frame.data + first * kPacketSamples * sizeof(std::int16_t));
      for (std::size_t i = 0; i < power.size(); ++i) {
        power[i] += double{channels_[i][0]} * channels_[i][0] + double{channels_[i][1]} * channels_[i][1];
      }
      ++spectra;
    }
    std::size_t strongest = 1;
    double all = 0;
    for (std::size_t i = 1; i < power.size(); ++i) {  // 0 is the offset of the samples
      all += power[i];
      if (power[i] > power[strongest]) strongest = i;
    }
    std::printf("heap %lu: %u packets lost, %d spectra, %d left out", frame.first_sequence, frame.missing, spectra,
                left_out);
    if (all > 0) std::printf(", channel %zu has %.2f %% of the power", strongest, 100 * power[strongest] / all);
    std::puts("");
  }

 private:
  void transform(const std::uint8_t* bytes) {
    std::array<std::int16_t, kSamples> integers;
    std::memcpy(integers.data(), bytes, sizeof(integers));
    for (std::size_t i = 0; i < kSamples; ++i) samples_[i] = integers[i];
    fftwf_execute(plan_);
  }

  float* samples_;
  fftwf_complex* channels_;
  fftwf_plan plan_;
};

/// Takes frames off the queue until `done` is set and there are no more. A thread of its own.
void consume(flow::FrameQueue frames, const std::atomic<bool>& done) {
  Spectrometer spectrometer;
  for (;;) {
    const bool last_look = done.load();
    while (const flow::Frame* const frame = frames.next()) {
      spectrometer.look_at(*frame);
      frames.release(frame->buffer);
    }
    if (last_look) return;
    std::this_thread::yield();
  }
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return static_cast<int>(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  datapath::DatapathSettings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packets") == 0 && i + 1 < argc) {
      settings.packets = std::strtoull(argv[++i], nullptr, 10);
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  const auto description = flow::parse_frame_description(kDescription);
  if (!description) return fail(description.error());
  const auto memory = std::make_unique<FrameMemory>();
  auto assembler = flow::FrameAssembler::create(*description, flow::PacketForm::ethernet, memory->bytes);
  if (!assembler) return fail(assembler.error());

  const runtime::StopOnSignal on_signal;
  ingest::IngestSettings receiving;
  receiving.path = ingest::IngestPath::zerocopy;
  auto run = ingest::IngestRun::start(settings, receiving, Assemble{&*assembler});
  if (!run) return fail(run.error());
  std::puts("receiving");
  std::fflush(stdout);
  std::atomic<bool> done = false;
  std::thread consumer(consume, assembler->queue(), std::cref(done));
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  assembler->flush();
  done = true;
  consumer.join();
  const flow::AssemblerCounts counts = assembler->counts();
  std::printf("%lu frames complete, %lu not, %lu packets missing\n", counts.complete, counts.incomplete,
              counts.missing);
  return ended ? 0 : fail(ended.error());
}
