// SPDX-License-Identifier: Apache-2.0
// What one GPU and its host can do at best, as one JSON object: the ceilings that results of the same run are held
// against. Copies are of 256 MiB between pinned and device memory, Gbit/s (10^9); swaps are of the first 12 bytes of
// frames in slots of 2 KiB, one thread a frame, in place; "kernel" copies are the same done by a kernel, 1 KiB a warp,
// with as many CTAs as do best. Medians of 9.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace {

constexpr std::size_t kCopy = 256U << 20;
constexpr std::size_t kSlot = 2048;
constexpr std::size_t kPiece = 1024;
constexpr int kRepeats = 9;
constexpr int kLaunches = 2000;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "ceilings: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}
#define CHECK(call) check(call, #call)

__global__ void nothing() {}

__global__ void swap_addresses(std::uint8_t* slots, std::uint32_t frames) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= frames) return;
  auto* const head = reinterpret_cast<uint4*>(slots + i * kSlot);
  uint4 words = *head;
  const std::uint32_t a = words.x, b = words.y, c = words.z;
  words.x = b >> 16 | c << 16;
  words.y = c >> 16 | a << 16;
  words.z = a >> 16 | b << 16;
  *head = words;
}

/// Every second warp copies in, the others out.
__global__ void copy_by_warps(uint4* in_to, const uint4* in_from, uint4* out_to, const uint4* out_from,
                              std::uint32_t pieces) {
  constexpr unsigned kWarp = 32;
  constexpr unsigned kUnits = kPiece / sizeof(uint4);
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const unsigned warps = gridDim.x * blockDim.x / kWarp;
  uint4* const to = warp % 2 == 0 ? in_to : out_to;
  const uint4* const from = warp % 2 == 0 ? in_from : out_from;
  for (std::uint32_t piece = warp / 2; piece < pieces; piece += warps / 2) {
    const std::size_t at = std::size_t{piece} * kUnits + threadIdx.x % kWarp;
    const uint4 first = from[at];
    const uint4 second = from[at + kWarp];
    to[at] = first;
    to[at + kWarp] = second;
  }
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Median seconds of work() until all that it started has ended.
template <typename F>
double median_seconds(F&& work) {
  std::array<double, kRepeats> samples{};
  work();
  CHECK(cudaDeviceSynchronize());
  for (double& sample : samples) {
    const double begun = seconds();
    work();
    CHECK(cudaDeviceSynchronize());
    sample = seconds() - begun;
  }
  std::sort(samples.begin(), samples.end());
  return samples[kRepeats / 2];
}

double gbps(double time) { return 8.0 * kCopy / time / 1e9; }

double swap_mpps(std::uint8_t* slots, std::uint32_t frames, cudaStream_t stream) {
  constexpr int kKernels = 50;
  constexpr std::uint32_t kThreads = 128;
  const double time = median_seconds([&] {
    for (int i = 0; i < kKernels; ++i) {
      swap_addresses<<<(frames + kThreads - 1) / kThreads, kThreads, 0, stream>>>(slots, frames);
    }
    CHECK(cudaGetLastError());
  });
  return kKernels * static_cast<double>(frames) / time / 1e6;
}

}  // namespace

int main() {
  std::uint8_t *host = nullptr, *device = nullptr;
  cudaStream_t in = nullptr, out = nullptr;
  CHECK(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&out, cudaStreamNonBlocking));
  CHECK(cudaHostAlloc(&host, 2 * kCopy, cudaHostAllocMapped));
  CHECK(cudaMalloc(&device, 2 * kCopy));
  CHECK(cudaMemset(device, 1, 2 * kCopy));

  const auto copy_in = [&] { CHECK(cudaMemcpyAsync(device, host, kCopy, cudaMemcpyHostToDevice, in)); };
  const auto copy_out = [&] {
    CHECK(cudaMemcpyAsync(host + kCopy, device + kCopy, kCopy, cudaMemcpyDeviceToHost, out));
  };
  const double to_device = gbps(median_seconds(copy_in));
  const double to_host = gbps(median_seconds(copy_out));
  const double both = gbps(median_seconds([&] {
    copy_in();
    copy_out();
  }));
  double both_by_kernel = 0;
  for (const unsigned ctas : {32U, 64U, 132U, 264U}) {
    const auto copy = [&] {
      auto* const host_words = reinterpret_cast<uint4*>(host);
      auto* const device_words = reinterpret_cast<uint4*>(device);
      constexpr std::size_t kHalf = kCopy / sizeof(uint4);
      copy_by_warps<<<ctas, 512, 0, in>>>(device_words, host_words, host_words + kHalf, device_words + kHalf,
                                          kCopy / kPiece);
      CHECK(cudaGetLastError());
    };
    both_by_kernel = std::max(both_by_kernel, gbps(median_seconds(copy)));
  }
  const double launch = median_seconds([&] {
    for (int i = 0; i < kLaunches; ++i) nothing<<<1, 32, 0, in>>>();
    CHECK(cudaGetLastError());
  });
  constexpr std::uint32_t kInHost = 4096, kInDevice = 32768;
  std::printf(
      "{\"copy_to_device_gbps\": %.1f, \"copy_to_host_gbps\": %.1f, \"copy_both_ways_gbps\": %.1f, "
      "\"kernel_copy_both_ways_gbps\": %.1f, "
      "\"launch_us\": %.3f, \"swap_pinned_mpps\": %.1f, \"swap_device_mpps\": %.1f}\n",
      to_device, to_host, both, both_by_kernel, launch / kLaunches * 1e6, swap_mpps(host, kInHost, in),
      swap_mpps(device, kInDevice, in));
}
