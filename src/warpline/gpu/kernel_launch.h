// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"

struct CUgraphExec_st;

namespace warpline::gpu {

/// A kernel, its shape and its arguments, to be launched as often as is wanted. One thread at a time.
class KernelLaunch {
 public:
  /// `kernel` is the address of a __global__ function and `arguments` are of exactly its parameters' types.
  template <typename... Arguments>
  KernelLaunch(const void* kernel, unsigned ctas, unsigned threads, const Arguments&... arguments)
      : kernel_(kernel), ctas_(ctas), threads_(threads) {
    (add(arguments), ...);
  }

  /// Changes the argument at that place, from 0, for launches from now on: `argument` is of the parameter's type.
  template <typename T>
  void set(std::size_t place, const T& argument) {
    std::memcpy(values_[place].get(), &argument, sizeof(T));
  }

  /// Queues it on the stream. False when CUDA refuses; CudaStream::failure() says why.
  [[nodiscard]] bool operator()(const CudaStream& stream) { return on(stream.get()); }
  /// The same for a cudaStream_t that somebody else owns.
  [[nodiscard]] bool on(CUstream_st* stream);

  /// The __global__ function.
  [[nodiscard]] const void* kernel() const { return kernel_; }
  /// How many of its CTAs one multiprocessor of the calling thread's GPU holds at a time; 0 if none.
  [[nodiscard]] Result<std::uint32_t> ctas_per_multiprocessor() const;

 private:
  template <typename T>
  void add(const T& argument) {
    values_.push_back(std::make_unique<std::byte[]>(sizeof(T)));
    std::memcpy(values_.back().get(), &argument, sizeof(T));
    addresses_.push_back(values_.back().get());
  }

  const void* kernel_;
  unsigned ctas_;
  unsigned threads_;
  std::vector<std::unique_ptr<std::byte[]>> values_;
  std::vector<void*> addresses_;
};

/// A launch made ready once, so that each one costs less. One thread at a time.
class LaunchGraph {
 public:
  /// On the calling thread's GPU, which has all that it needs of the graph when this returns.
  [[nodiscard]] static Result<LaunchGraph> create(KernelLaunch launch);

  /// As KernelLaunch.
  [[nodiscard]] bool operator()(const CudaStream& stream);

 private:
  struct Destroy {
    void operator()(CUgraphExec_st* graph) const;
  };
  explicit LaunchGraph(CUgraphExec_st* graph) : graph_(graph) {}

  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
};

}  // namespace warpline::gpu
