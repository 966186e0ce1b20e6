// SPDX-License-Identifier: Apache-2.0
// A spectrometer of SPEAD packets: spead_spectrum --packets N PORT... Each heap of 16 KiB, 16 packets of 1 KiB of
// signed 16-bit samples, becomes a frame; each 2048 samples of it a spectrum, on the host by FFTW or, in
// spead_spectrum_gpu, in GPU memory by cuFFT; and all spectra of a frame a line: how many there are, how many were left
// out because a packet of theirs was lost, and the channel that is the strongest.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spectrometer.h"
#include "warpline/gpu/device.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/runtime/stop.h"

using namespace warpline;

namespace {

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return static_cast<int>(error.kind);
}

}  // namespace

void spectrum::print(const FramePower& frame) {
  std::size_t strongest = 1;
  double all = 0;
  for (std::size_t i = 1; i < frame.power.size(); ++i) {  // 0 is the offset of the samples
    all += frame.power[i];
    if (frame.power[i] > frame.power[strongest]) strongest = i;
  }
  std::printf("heap %lu: %u packets lost, %u spectra, %zu left out", frame.heap, frame.lost, frame.spectra,
              kSpectra - frame.spectra);
  if (all > 0) std::printf(", channel %zu has %.2f %% of the power", strongest, 100 * frame.power[strongest] / all);
  std::puts("");
}

int main(int argc, char** argv) {
  datapath::DatapathSettings settings;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--packets") == 0 && i + 1 < argc) {
      settings.packets = std::strtoull(argv[++i], nullptr, 10);
    } else {
      settings.ports.emplace_back().spec = argv[i];
    }
  }
  ingest::IngestSettings receiving;
  receiving.frame = spectrum::kDescription;
  receiving.path = spectrum::on_gpu() ? ingest::IngestPath::copy : ingest::IngestPath::zerocopy;
  settings.forward.engine = spectrum::on_gpu() ? EngineKind::launch : EngineKind::thread;
  if (const auto gpus = gpu::list_gpus(); spectrum::on_gpu() && !gpus) return fail(gpus.error());
  const auto spectrometer = spectrum::make_spectrometer();
  if (!spectrometer) return static_cast<int>(ErrorKind::environment);
  const runtime::StopOnSignal on_signal;
  auto run = ingest::IngestRun::start_frames(settings, receiving, *spectrometer);
  if (!run) return fail(run.error());
  std::puts("receiving");
  std::fflush(stdout);
  const Result<void> ended = (*run)->run(runtime::StopOnSignal::requested());
  if (!ended) return fail(ended.error());
  const auto counts = (*run)->frames();
  std::printf("%lu frames complete, %lu not, %lu packets missing\n", counts->complete, counts->incomplete,
              counts->missing);
  return 0;
}
