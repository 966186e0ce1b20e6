// SPDX-License-Identifier: Apache-2.0
#include "packet/checksum.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace warpline {
namespace {

#if defined(__x86_64__)
/// Of whole 64 bytes, which it takes off.
[[gnu::target("avx2")]] std::uint64_t sum_avx2(const std::uint8_t*& bytes, std::uint32_t& n) {
  const __m256i low = _mm256_set1_epi64x(0xffffffff);
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  constexpr std::uint32_t kAhead = 1024;  // what is sent is rarely in the cache, and longer than this piece
  for (; n >= 64; n -= 64, bytes += 64) {
    __builtin_prefetch(bytes + kAhead);
    for (int half = 0; half < 2; ++half) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes) + half);
      const __m256i both = _mm256_add_epi64(_mm256_and_si256(words, low), _mm256_srli_epi64(words, 32));
      sum[half] = _mm256_add_epi64(sum[half], both);
    }
  }
  const __m256i all = _mm256_add_epi64(sum[0], sum[1]);
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif

}  // namespace

std::uint64_t sum_long(const std::uint8_t* bytes, std::uint32_t n) {
  std::uint64_t sum = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) sum = sum_avx2(bytes, n);
#endif
  return sum + ChecksumSum::sum_short(bytes, n);
}

}  // namespace warpline
