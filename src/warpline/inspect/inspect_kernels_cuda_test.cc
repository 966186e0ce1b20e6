// SPDX-License-Identifier: Apache-2.0
// A GPU's digests and findings against the host's. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <memory>

#include "warpline/gpu/gpu_testing.cuh"
#include "warpline/inspect/inspect_kernels.h"
#include "warpline/inspect/inspect_testing.h"

namespace warpline::inspect {
namespace {

using gpu::testing::launch;
using gpu::testing::managed_array;
using gpu::testing::no_gpu;

template <typename T>
std::shared_ptr<T[]> copy_of(std::span<const T> values) {
  const std::shared_ptr<T[]> copy = managed_array<T>(values.size());
  std::copy(values.begin(), values.end(), copy.get());
  return copy;
}

/// Streams of random letters that come in pieces of random lengths, a piece of some of them at a time.
class Streams {
 public:
  Streams(Random& random, std::uint32_t count, std::uint64_t letters) : random_(random), taken_(count) {
    std::string all;
    for (std::uint32_t i = 0; i < count; ++i) {
      texts.push_back(random_text(random, random.below(20'000), letters));
      all += texts.back();
    }
    bytes_ = copy_of(std::span<const std::uint8_t>(bytes_of(all), all.size()));
    pieces = managed_array<StreamPiece>(count);
  }

  /// Returns how many pieces there are now; 0: all has been taken.
  std::uint32_t next() {
    std::uint32_t count = 0;
    std::uint64_t begin = 0;
    bool more = false;
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
      const std::uint64_t left = texts[i].size() - taken_[i];
      more |= left != 0;
      const std::uint64_t length = std::min<std::uint64_t>(left, random_.below(9'000));
      if (random_.below(4) != 0) pieces.get()[count++] = {bytes_.get() + begin + taken_[i], length, i};
      begin += texts[i].size();
    }
    for (std::uint32_t i = 0; i < count; ++i) taken_[pieces.get()[i].stream] += pieces.get()[i].count;
    return more && count == 0 ? next() : more ? count : 0;
  }

  std::vector<std::string> texts;
  std::shared_ptr<StreamPiece[]> pieces;

 private:
  Random& random_;
  std::vector<std::uint64_t> taken_;
  std::shared_ptr<std::uint8_t[]> bytes_;
};

TEST(InspectKernels, DigestsAreTheHosts) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  Random random(4);
  constexpr std::uint32_t kStreams = 300;
  Streams streams(random, kStreams, 26);
  const std::shared_ptr<Sha256[]> digests = managed_array<Sha256>(kStreams);
  std::fill_n(digests.get(), kStreams, Sha256{});
  while (const std::uint32_t count = streams.next()) {
    launch(digest_kernel(), (count + 63) / 64, 64, streams.pieces.get(), count, digests.get());
  }
  for (std::uint32_t i = 0; i < kStreams; ++i) {
    Sha256 expected;
    expected.add(bytes_of(streams.texts[i]), streams.texts[i].size());
    ASSERT_EQ(digests.get()[i].length(), expected.length());
    ASSERT_EQ(digests.get()[i].digest(), expected.digest());
  }
}

TEST(InspectKernels, FindingsAreTheHosts) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  Random random(5);
  for (int run = 0; run < 30; ++run) {
    const std::uint64_t letters = 2 + random.below(4);
    const std::vector<std::string> patterns =
        random_patterns(random, 1 + random.below(40), 1 + random.below(40), letters);
    auto set = PatternSet::create(patterns);
    ASSERT_TRUE(set.ok());
    const auto classes = copy_of(set->classes());
    const auto next = copy_of(set->next());
    const auto ends = copy_of(set->ends());
    const auto shorter = copy_of(set->shorter());
    PatternTable table = set->table();
    table.classes = classes.get();
    table.next = next.get();
    table.ends = ends.get();
    table.shorter = shorter.get();
    constexpr std::uint32_t kStreams = 20;
    Streams streams(random, kStreams, letters);
    const std::shared_ptr<std::uint16_t[]> states = managed_array<std::uint16_t>(kStreams);
    std::fill_n(states.get(), kStreams, std::uint16_t{0});
    const auto found = managed_array<unsigned long long>(patterns.size());
    std::fill_n(found.get(), patterns.size(), 0ULL);
    while (const std::uint32_t count = streams.next()) {
      launch(search_kernel(), 7, kSearchThreads, table, streams.pieces.get(), count, states.get(), found.get());
    }
    std::vector<std::uint64_t> expected(patterns.size());
    for (const std::string& text : streams.texts) {
      const std::vector<std::uint64_t> counts = count_one_by_one(text, patterns);
      for (std::size_t p = 0; p < patterns.size(); ++p) expected[p] += counts[p];
    }
    ASSERT_EQ(std::vector<std::uint64_t>(found.get(), found.get() + patterns.size()), expected);
  }
}

}  // namespace
}  // namespace warpline::inspect
