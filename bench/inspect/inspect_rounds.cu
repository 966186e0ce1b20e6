// SPDX-License-Identifier: Apache-2.0
// inspect_rounds [ROUNDS]: digests and searches of many streams in a GPU's memory, beside all cores of the host doing
// the same to them in its own memory: OpenSSL, Hyperscan, and the GPU's automaton. Contenders take turns, each GPU
// contender twice as the control; results are compared in every round. One JSON object: bytes of all streams a second,
// medians with 95 % intervals. "read" is a kernel that only reads the bytes: the floor. Those with "board" find the
// bytes as consumers of TCP connections on a GPU do, in rings by a lane's board, and release them, which the host takes
// in.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "board_consumers.h"
#include "host_cores.h"
#include "warpline/base/random.h"
#include "warpline/inspect/inspect_kernels.h"

namespace warpline::bench {
namespace {

constexpr std::uint32_t kStreams[] = {1, 64, 1024, 4096, 16'384};
constexpr std::uint64_t kLength = 64U << 10;
constexpr std::size_t kPatterns = 1000;
constexpr unsigned kDigestThreads = 32;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "inspect_rounds: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}
#define CHECK(call) check(call, #call)

template <typename T>
T* on_device(std::size_t count) {
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  return static_cast<T*>(memory);
}

template <typename T>
T* to_device(const T* values, std::size_t count) {
  T* const copy = on_device<T>(count);
  CHECK(cudaMemcpy(copy, values, count * sizeof(T), cudaMemcpyHostToDevice));
  return copy;
}

__global__ void read_all(const uint4* words, std::uint64_t count, std::uint32_t* sum) {
  std::uint32_t own = 0;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += std::uint64_t{gridDim.x} * blockDim.x) {
    const uint4 word = words[i];
    own += word.x ^ word.y ^ word.z ^ word.w;
  }
  atomicXor(sum, own);
}

struct Contender {
  const char* name;
  std::function<void()> run;
  std::vector<double> seconds;
};

double at(std::vector<double> values, double place) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(place * static_cast<double>(values.size() - 1) + 0.5)];
}

void expect(bool right, const char* what, std::uint32_t streams) {
  if (right) return;
  std::fprintf(stderr, "inspect_rounds: %s of %u streams differ\n", what, streams);
  std::exit(4);
}

/// Letters, digits and blanks, in which a pattern is planted about every 2 KiB.
std::vector<std::uint8_t> make_text(std::uint64_t length, const std::vector<std::string>& patterns, Random& random) {
  std::vector<std::uint8_t> text(length);
  for (std::uint8_t& byte : text) byte = static_cast<std::uint8_t>(' ' + random.below(95));
  for (std::uint64_t begin = 0; begin + 4096 <= length; begin += 2048) {
    const std::string& pattern = patterns[random.below(patterns.size())];
    std::memcpy(text.data() + begin + random.below(2000), pattern.data(), pattern.size());
  }
  return text;
}

int run(int rounds) {
  Random random(11);
  std::vector<std::string> patterns(kPatterns);
  for (std::string& pattern : patterns) {
    pattern.resize(6 + random.below(11));
    for (char& c : pattern) c = static_cast<char>('a' + random.below(26));
  }
  auto made = inspect::PatternSet::create(patterns);
  if (!made.ok()) return 3;
  const inspect::PatternSet& set = *made;
  inspect::PatternTable table = set.table();
  table.classes = to_device(set.classes().data(), set.classes().size());
  table.next = to_device(set.next().data(), set.next().size());
  table.ends = to_device(set.ends().data(), set.ends().size());
  table.shorter = to_device(set.shorter().data(), set.shorter().size());

  const unsigned cores = std::thread::hardware_concurrency();
  HostCores host(cores);
  cudaDeviceProp gpu{};
  CHECK(cudaGetDeviceProperties(&gpu, 0));
  const auto ctas = static_cast<unsigned>(gpu.multiProcessorCount * 8);
  const std::uint32_t most = *std::max_element(std::begin(kStreams), std::end(kStreams));
  const std::vector<std::uint8_t> text = make_text(most * kLength, patterns, random);
  const std::uint8_t* const device_text = to_device(text.data(), text.size());
  auto* const digests = on_device<inspect::Sha256>(most);
  auto* const states = on_device<std::uint16_t>(most);
  auto* const found = on_device<unsigned long long>(kPatterns);
  auto* const sum = on_device<std::uint32_t>(1);
  const std::vector<inspect::Sha256> fresh(most);
  BoardConsumers board(text, most, kLength);

  std::printf(
      "{\"benchmark\": \"inspect\", \"gpu\": \"%s\", \"cores\": %u, \"rounds\": %d, \"stream_bytes\": %llu, "
      "\"patterns\": %zu, \"automaton_states\": %zu, \"hyperscan\": %s, \"cells\": [",
      gpu.name, cores, rounds, static_cast<unsigned long long>(kLength), kPatterns, set.states(),
      HostCores::kHasHyperscan ? "true" : "false");
  for (const std::uint32_t streams : kStreams) {
    std::vector<inspect::StreamPiece> pieces(streams);
    for (std::uint32_t i = 0; i < streams; ++i) pieces[i] = {device_text + i * kLength, kLength, i};
    const inspect::StreamPiece* const device_pieces = to_device(pieces.data(), pieces.size());
    const HostStreams host_streams{text.data(), streams, kLength};
    const std::uint64_t bytes = streams * kLength;
    std::vector<std::uint8_t> host_digests;
    std::vector<std::uint64_t> hyperscan_counts, scan_counts;

    const auto launch = [&](const void* kernel, unsigned grid, unsigned threads, void** arguments) {
      CHECK(cudaLaunchKernel(kernel, dim3(grid), dim3(threads), arguments, 0, nullptr));
      CHECK(cudaDeviceSynchronize());
    };
    std::uint32_t count = streams;
    const auto digest_on_gpu = [&] {
      auto* states_of_digests = digests;
      const inspect::StreamPiece* list = device_pieces;
      void* arguments[] = {&list, &count, &states_of_digests};
      launch(inspect::digest_kernel(), (streams + kDigestThreads - 1) / kDigestThreads, kDigestThreads, arguments);
    };
    const auto search_on_gpu = [&] {
      const inspect::StreamPiece* list = device_pieces;
      auto* state_list = states;
      auto* counts = found;
      void* arguments[] = {&table, &list, &count, &state_list, &counts};
      launch(inspect::search_kernel(), std::min(ctas, streams), inspect::kSearchThreads, arguments);
    };
    const auto read_on_gpu = [&] {
      read_all<<<ctas, 256>>>(reinterpret_cast<const uint4*>(device_text), bytes / sizeof(uint4), sum);
      CHECK(cudaDeviceSynchronize());
    };
    std::vector<Contender> contenders = {
        {"read", read_on_gpu, {}},
        {"digest_gpu", digest_on_gpu, {}},
        {"digest_gpu_again", digest_on_gpu, {}},
        {"digest_board", [&] { expect(board.digest(streams, digests), "releases", streams); }, {}},
        {"digest_openssl", [&] { host_digests = host.digests(host_streams); }, {}},
        {"search_gpu", search_on_gpu, {}},
        {"search_gpu_again", search_on_gpu, {}},
        {"search_board",
         [&] { expect(board.search(streams, table, states, found, std::min(ctas, streams)), "releases", streams); },
         {}},
        {"search_hyperscan", [&] { hyperscan_counts = host.hyperscan(host_streams, patterns); }, {}},
        {"search_automaton", [&] { scan_counts = host.scan(host_streams, set); }, {}},
    };
    for (int round = -1; round < rounds; ++round) {
      // In another order each round; the first one warms up.
      for (std::size_t i = contenders.size(); i > 1; --i) std::swap(contenders[i - 1], contenders[random.below(i)]);
      for (Contender& contender : contenders) {
        CHECK(cudaMemcpy(digests, fresh.data(), streams * sizeof(inspect::Sha256), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(states, 0, streams * sizeof(std::uint16_t)));
        CHECK(cudaMemset(found, 0, kPatterns * sizeof(unsigned long long)));
        const std::string_view name = contender.name;
        if (name.ends_with("board")) board.commit(streams);
        CHECK(cudaDeviceSynchronize());
        const auto begin = std::chrono::steady_clock::now();
        contender.run();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (round >= 0) contender.seconds.push_back(took.count());
        const bool on_gpu = name.find("gpu") != name.npos || name.ends_with("board");
        if (name.starts_with("digest") && on_gpu && !host_digests.empty()) {
          std::vector<inspect::Sha256> ours(streams);
          CHECK(cudaMemcpy(ours.data(), digests, streams * sizeof(inspect::Sha256), cudaMemcpyDeviceToHost));
          for (std::uint32_t i = 0; i < streams; ++i) {
            expect(std::memcmp(ours[i].digest().data(), host_digests.data() + std::size_t{i} * 32, 32) == 0, "digests",
                   streams);
          }
        }
        if (name.starts_with("search") && on_gpu && !scan_counts.empty()) {
          std::vector<unsigned long long> ours(kPatterns);
          CHECK(cudaMemcpy(ours.data(), found, kPatterns * sizeof(unsigned long long), cudaMemcpyDeviceToHost));
          expect(std::equal(ours.begin(), ours.end(), scan_counts.begin()), "findings", streams);
        }
        expect(hyperscan_counts.empty() || scan_counts.empty() || hyperscan_counts == scan_counts,
               "Hyperscan's findings", streams);
      }
    }
    std::sort(contenders.begin(), contenders.end(),
              [](const Contender& a, const Contender& b) { return std::strcmp(a.name, b.name) < 0; });
    std::printf("%s{\"streams\": %u, \"bytes\": %llu, \"found\": %llu, \"gbytes_per_s\": {",
                streams == kStreams[0] ? "" : ", ", streams, static_cast<unsigned long long>(bytes), [&] {
                  unsigned long long all = 0;
                  for (const std::uint64_t one : scan_counts) all += one;
                  return all;
                }());
    bool first = true;
    for (const Contender& contender : contenders) {
      if (hyperscan_counts.empty() && std::string_view(contender.name) == "search_hyperscan") continue;
      const auto rate = [&](double place) { return static_cast<double>(bytes) / at(contender.seconds, place) / 1e9; };
      std::printf("%s\"%s\": {\"median\": %.3f, \"ci95\": [%.3f, %.3f]}", std::exchange(first, false) ? "" : ", ",
                  contender.name, rate(0.5), rate(0.8), rate(0.2));
    }
    std::printf("}}");
    std::fflush(stdout);
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main(int argc, char** argv) { return warpline::bench::run(argc > 1 ? std::atoi(argv[1]) : 15); }
