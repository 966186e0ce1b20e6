// SPDX-License-Identifier: Apache-2.0
// Spectra in GPU memory, by cuFFT, on the stream that comes with each frame.
#include <cufft.h>

#include <cstdio>

#include "spectrometer.h"

namespace spectrum {
namespace {

/// A block makes a spectrum's samples of the bytes, unless it lacks a packet: what lies there is of an earlier frame.
__global__ void make_samples(const std::uint8_t* data, const std::uint8_t* mask, float* samples, unsigned* spectra) {
  const auto* const integers = reinterpret_cast<const std::int16_t*>(data) + blockIdx.x * kSamples;
  bool whole = true;
  for (std::size_t i = 0; i < kPackets; ++i) whole = whole && mask[blockIdx.x * kPackets + i] != 0;
  for (unsigned i = threadIdx.x; i < kSamples; i += blockDim.x) {
    samples[blockIdx.x * kSamples + i] = whole ? integers[i] : 0.0F;
  }
  if (threadIdx.x == 0 && whole) atomicAdd(spectra, 1);
}

/// A thread sums up a channel. Spectra that were left out have no power.
__global__ void sum_power(const cufftComplex* channels, float* power) {
  const unsigned channel = blockIdx.x * blockDim.x + threadIdx.x;
  if (channel >= kChannels) return;
  float sum = 0;
  for (std::size_t i = 0; i < kSpectra; ++i) {
    const cufftComplex value = channels[i * kChannels + channel];
    sum += value.x * value.x + value.y * value.y;
  }
  power[channel] = sum;
}

/// Behind the copies of a frame's figures, by a thread of CUDA's.
void print_line(void* line) { print(*static_cast<const FramePower*>(line)); }

class GpuSpectrometer final : public warpline::ingest::FrameConsumer {
 public:
  GpuSpectrometer() = default;
  GpuSpectrometer(const GpuSpectrometer&) = delete;
  GpuSpectrometer& operator=(const GpuSpectrometer&) = delete;
  ~GpuSpectrometer() override {
    if (plan_ != 0) cufftDestroy(plan_);
    for (void* const memory : {static_cast<void*>(samples_), static_cast<void*>(channels_), static_cast<void*>(power_),
                               static_cast<void*>(spectra_)}) {
      cudaFree(memory);
    }
    cudaFreeHost(lines_);
  }

  /// Takes memory, and runs all of it once, so that no frame waits for kernels to be loaded.
  bool prepare() {
    std::uint8_t* nothing = nullptr;
    constexpr std::size_t kBytes = kPacketsPerFrame * kPacketSamples * sizeof(std::int16_t);
    bool ready = cufftPlan1d(&plan_, kSamples, CUFFT_R2C, kSpectra) == CUFFT_SUCCESS &&
                 cudaMalloc(&samples_, kSpectra * kSamples * sizeof(float)) == cudaSuccess &&
                 cudaMalloc(&channels_, kSpectra * kChannels * sizeof(cufftComplex)) == cudaSuccess &&
                 cudaMalloc(&power_, kChannels * sizeof(float)) == cudaSuccess &&
                 cudaMalloc(&spectra_, sizeof(*spectra_)) == cudaSuccess &&
                 cudaMallocHost(&lines_, warpline::ingest::kMostFramesInWork * sizeof(*lines_)) == cudaSuccess &&
                 cudaMalloc(&nothing, kBytes + kPacketsPerFrame) == cudaSuccess &&
                 cudaMemset(nothing, 0, kBytes + kPacketsPerFrame) == cudaSuccess;
    ready = ready && transform(nothing, nothing + kBytes, nullptr) && cudaDeviceSynchronize() == cudaSuccess;
    cudaFree(nothing);
    return ready;
  }

  bool consume(const warpline::ingest::ReadyFrame& ready) override {
    FramePower& line = lines_[next_++ % warpline::ingest::kMostFramesInWork];
    line.heap = ready.frame.first_sequence;
    line.lost = ready.frame.missing;
    const cudaStream_t stream = ready.stream;
    return transform(ready.frame.data, ready.frame.mask, stream) &&
           cudaMemcpyAsync(&line.spectra, spectra_, sizeof(line.spectra), cudaMemcpyDefault, stream) == cudaSuccess &&
           cudaMemcpyAsync(line.power.data(), power_, sizeof(line.power), cudaMemcpyDefault, stream) == cudaSuccess &&
           cudaLaunchHostFunc(stream, print_line, &line) == cudaSuccess;
  }

 private:
  bool transform(const std::uint8_t* data, const std::uint8_t* mask, cudaStream_t stream) {
    if (cudaMemsetAsync(spectra_, 0, sizeof(*spectra_), stream) != cudaSuccess) return false;
    make_samples<<<kSpectra, 256, 0, stream>>>(data, mask, samples_, spectra_);
    if (cufftSetStream(plan_, stream) != CUFFT_SUCCESS) return false;
    if (cufftExecR2C(plan_, samples_, channels_) != CUFFT_SUCCESS) return false;
    sum_power<<<(kChannels + 127) / 128, 128, 0, stream>>>(channels_, power_);
    return cudaGetLastError() == cudaSuccess;
  }

  cufftHandle plan_ = 0;
  float* samples_ = nullptr;
  cufftComplex* channels_ = nullptr;
  float* power_ = nullptr;
  unsigned* spectra_ = nullptr;
  FramePower* lines_ = nullptr;  ///< pinned, of the frames in work
  std::uint64_t next_ = 0;       ///< frame
};

}  // namespace

bool on_gpu() { return true; }

std::unique_ptr<warpline::ingest::FrameConsumer> make_spectrometer() {
  auto spectrometer = std::make_unique<GpuSpectrometer>();
  if (spectrometer->prepare()) return spectrometer;
  std::fprintf(stderr, "cuFFT cannot take spectra on the GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
  return nullptr;
}

}  // namespace spectrum
