// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/checksum.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace warpline::packet {
namespace {

#if defined(__x86_64__)
/// Sums whole blocks of 64 bytes, copies them to `to` if `copies`, and moves `bytes`, `n` and `to` past them.
template <bool copies>
[[gnu::target("avx2,prfchw")]] std::uint64_t sum_avx2(std::uint8_t*& to_at, const std::uint8_t*& from_at,
                                                      std::uint32_t& left) {
  // In registers: what is stored may be any byte, so that the caller's variables would be written each time.
  std::uint8_t* to = to_at;
  const std::uint8_t* bytes = from_at;
  std::uint32_t n = left;
  const __m256i low = _mm256_set1_epi64x(0xffffffff);
  __m256i sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  constexpr std::uint32_t kAhead = 1024;  // what is sent is rarely in the cache, and longer than this piece
  for (; n >= 64; n -= 64, bytes += 64) {
    __builtin_prefetch(bytes + kAhead);
    if constexpr (copies) __builtin_prefetch(to + kAhead, 1);
    for (int half = 0; half < 2; ++half) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes) + half);
      if constexpr (copies) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to) + half, words);
      const __m256i both = _mm256_add_epi64(_mm256_and_si256(words, low), _mm256_srli_epi64(words, 32));
      sum[half] = _mm256_add_epi64(sum[half], both);
    }
    if constexpr (copies) to += 64;
  }
  to_at = to;
  from_at = bytes;
  left = n;
  const __m256i all = _mm256_add_epi64(sum[0], sum[1]);
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif

/// What is carried out comes in again.
std::uint64_t around(std::uint64_t a, std::uint64_t b) { return a + b + (a + b < b ? 1 : 0); }

}  // namespace

std::uint64_t sum_long(const std::uint8_t* bytes, std::uint32_t n) {
  std::uint64_t sum = 0;
#if defined(__x86_64__)
  std::uint8_t* nowhere = nullptr;
  if (__builtin_cpu_supports("avx2")) sum = sum_avx2<false>(nowhere, bytes, n);
#endif
  return around(sum, ChecksumSum::sum_short(bytes, n));
}

std::uint64_t copy_and_sum_long(std::uint8_t* to, const std::uint8_t* from, std::uint32_t n) {
  // For many bytes memcpy() does not fetch what it overwrites, which may be in another core's cache: that is worth
  // reading the bytes twice.
  constexpr std::uint32_t kMany = 2048;
  std::uint64_t sum = 0;
  if (n >= kMany) {
    sum = sum_long(from, n);
    std::memcpy(to, from, n);
    return sum;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    // Stores of whole halves of cache lines, where that leaves whole words to be summed.
    const std::uint32_t before = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) % 32 & ~1U;
    std::memcpy(to, from, before);
    sum = ChecksumSum::sum_short(from, before);
    to += before;
    from += before;
    n -= before;
    sum = around(sum, sum_avx2<true>(to, from, n));
  }
#endif
  std::memcpy(to, from, n);
  return around(sum, ChecksumSum::sum_short(from, n));
}

}  // namespace warpline::packet
