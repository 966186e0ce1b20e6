// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <thread>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "warpline/base/time/clock.h"
#include "warpline/gpu/cuda_error.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/driver_call.h"

namespace warpline::gpu {
namespace {

/// The driver's functions for words in the order of a stream; null where there are none.
struct WordCalls {
  decltype(&cuStreamWriteValue64) write =
      reinterpret_cast<decltype(&cuStreamWriteValue64)>(driver_call("cuStreamWriteValue64"));
  decltype(&cuStreamWaitValue64) wait =
      reinterpret_cast<decltype(&cuStreamWaitValue64)>(driver_call("cuStreamWaitValue64"));
};

const WordCalls& word_calls() {
  static const WordCalls found;
  return found;
}

CUdeviceptr address_of(const std::uint64_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

}  // namespace

Result<CudaStream> CudaStream::create() {
  cudaStream_t stream = nullptr;
  if (const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); code != cudaSuccess) {
    return cuda_error("a CUDA stream", code);
  }
  return CudaStream(stream);
}

CudaStream::State CudaStream::query() const {
  const cudaError_t code = cudaStreamQuery(stream_.get());
  return code == cudaSuccess ? State::idle : code == cudaErrorNotReady ? State::busy : State::failed;
}

Result<void> CudaStream::wait(Nanos timeout) const {
  for (const std::uint64_t begin = ticks_now();; std::this_thread::yield()) {
    const cudaError_t code = cudaStreamQuery(stream_.get());
    if (code == cudaSuccess) return {};
    if (code != cudaErrorNotReady) return cuda_error("work on the GPU", code);
    if (gpus_abandoned()) {
      return environment_error("work on the GPU", "the GPU was given up: earlier work on it hangs",
                               "run `warpline doctor`");
    }
    if (timeout == kNoTimeout || ticks_now() - begin < nanos_to_ticks(timeout)) continue;
    abandon_gpus();
    return environment_error("work on the GPU", fmt::format("it was not done within {} ms", timeout.value / 1'000'000),
                             "run `warpline doctor`; other programs may keep the GPU busy");
  }
}

std::optional<Error> CudaStream::failure() const {
  const cudaError_t code = cudaStreamQuery(stream_.get());
  if (code == cudaSuccess || code == cudaErrorNotReady) return std::nullopt;
  return cuda_error("work on the GPU", code);
}

Result<void> CudaStream::copy(void* to, const void* from, std::size_t bytes) const {
  if (const cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get());
      code != cudaSuccess) {
    return cuda_error(fmt::format("a copy of {} bytes", bytes), code);
  }
  return {};
}

bool CudaStream::queue_copy(void* to, const void* from, std::size_t bytes) const {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()) == cudaSuccess;
}

bool CudaStream::queue_word(CUstream_st* stream, std::uint64_t* word, std::uint64_t value) {
  return word_calls().write(stream, address_of(word), value, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

bool CudaStream::queue_wait(CUstream_st* stream, const std::uint64_t* word, std::uint64_t least) {
  return word_calls().wait(stream, address_of(word), least, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
}

Result<void> CudaStream::check_words() {
  if (word_calls().write != nullptr && word_calls().wait != nullptr) return {};
  return environment_error("words in the order of a CUDA stream", "the driver has no cuStreamWriteValue64",
                           "install a newer NVIDIA driver, or use --path zerocopy");
}

Result<CudaEvent> CudaEvent::create() {
  cudaEvent_t event = nullptr;
  if (const cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); code != cudaSuccess) {
    return cuda_error("a CUDA event", code);
  }
  return CudaEvent(event);
}

bool CudaEvent::record(CUstream_st* stream) const { return cudaEventRecord(event_.get(), stream) == cudaSuccess; }

bool CudaEvent::hold_back(const CudaStream& stream) const {
  return cudaStreamWaitEvent(stream.get(), event_.get(), 0) == cudaSuccess;
}

CudaStream::State CudaEvent::query() const {
  const cudaError_t code = cudaEventQuery(event_.get());
  if (code == cudaSuccess) return CudaStream::State::idle;
  return code == cudaErrorNotReady ? CudaStream::State::busy : CudaStream::State::failed;
}

void CudaEvent::Destroy::operator()(CUevent_st* event) const {
  if (!gpus_abandoned()) (void)cudaEventDestroy(event);
}

bool copy_and_wait(void* to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess;
}

Result<void> clear_and_wait(void* memory, std::size_t bytes) {
  WARPLINE_TRY(const CudaStream stream, CudaStream::create());
  if (const cudaError_t code = cudaMemsetAsync(memory, 0, bytes, stream.get()); code != cudaSuccess) {
    return cuda_error(fmt::format("{} bytes of zeros", bytes), code);
  }
  return stream.wait();
}

void CudaStream::Destroy::operator()(CUstream_st* stream) const {
  if (!gpus_abandoned()) (void)cudaStreamDestroy(stream);
}

}  // namespace warpline::gpu
