// SPDX-License-Identifier: Apache-2.0
// Spectra on the host, by FFTW.
#include <fftw3.h>

#include <cstring>

#include "spectrometer.h"

namespace spectrum {
namespace {

class HostSpectrometer final : public warpline::ingest::FrameConsumer {
 public:
  HostSpectrometer()
      : samples_(fftwf_alloc_real(kSamples)),
        channels_(fftwf_alloc_complex(kChannels)),
        plan_(fftwf_plan_dft_r2c_1d(kSamples, samples_, channels_, FFTW_ESTIMATE)) {}
  HostSpectrometer(const HostSpectrometer&) = delete;
  HostSpectrometer& operator=(const HostSpectrometer&) = delete;
  ~HostSpectrometer() override {
    fftwf_destroy_plan(plan_);
    fftwf_free(channels_);
    fftwf_free(samples_);
  }

  bool consume(const warpline::ingest::ReadyFrame& ready) override {
    FramePower sum{ready.frame.first_sequence, ready.frame.missing, 0, {}};
    for (std::size_t first = 0; first < kPacketsPerFrame; first += kPackets) {
      // What lies where a packet is missing is of an earlier frame.
      if (std::memchr(ready.frame.mask + first, 0, kPackets) != nullptr) continue;
      transform(ready.frame.data + first * kPacketSamples * sizeof(std::int16_t));
      for (std::size_t i = 0; i < kChannels; ++i) {
        sum.power[i] += channels_[i][0] * channels_[i][0] + channels_[i][1] * channels_[i][1];
      }
      ++sum.spectra;
    }
    print(sum);
    return true;
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

}  // namespace

bool on_gpu() { return false; }
std::unique_ptr<warpline::ingest::FrameConsumer> make_spectrometer() { return std::make_unique<HostSpectrometer>(); }

}  // namespace spectrum
