// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/plain_burst.h"

#include <algorithm>
#include <cstring>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace warpline::router {
namespace {

constexpr std::uint32_t kBegin = 2;  ///< first byte loaded, so that words of the IP header are words of the vector
constexpr std::uint32_t kIpAt = packet::EthernetView::kHeaderLength - kBegin;
constexpr std::uint8_t kVersion = 0x45;  ///< and five words of header
static_assert(kIpAt % 4 == 0 && kIpAt + packet::Ipv4View::kHeaderLength == 32 && kBegin + 32 == PlainBurst::kReads);

}  // namespace

PlainBurst::Instructions PlainBurst::best() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) return Instructions::avx512;
  if (__builtin_cpu_supports("avx2")) return Instructions::avx2;
#endif
  return Instructions::none;
}

PlainBurst::PlainBurst(const MacAddress& own, [[maybe_unused]] Instructions use)
    : expected_{}, first_(0), look_(nullptr) {
  std::memcpy(&first_, own.bytes.data(), kBegin);
  std::copy(own.bytes.begin() + kBegin, own.bytes.end(), expected_);
  packet::store_be16(expected_ + packet::EthernetView::kEtherType - kBegin, packet::kEtherTypeIpv4);
  expected_[kIpAt] = kVersion;
  for (std::uint32_t at = kIpAt + 1; at < 32; at += 2) expected_[at] = 0x80;
#if defined(__x86_64__)
  if (use == Instructions::avx2) look_ = look_avx2;
  if (use == Instructions::avx512) look_ = look_avx512;
#endif
}

#if defined(__x86_64__)
namespace {

/// Constants that stay in memory: there are more of them than registers.
struct alignas(32) Words {
  std::uint32_t word[8];
};
constexpr Words each(std::uint32_t word) { return {{word, word, word, word, word, word, word, word}}; }
constexpr Words kFixed{{0xffffffff, 0, 0xffff0000, 0x000000ff, 0, 0, 0, 0}};  // station, type, version
constexpr Words kReversed{
    {0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f, 0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f}};
constexpr Words kTurned = each(0x00800080);  // in host order
constexpr Words kLow = each(0xffff);
constexpr Words kByte = each(0xff);
constexpr Words kOnes = each(0x00010001);
/// What is missing of ten unsigned words that were taken as signed, and the version that was taken away.
constexpr Words kTaken = each(10 * 0x8000 + kVersion);
constexpr Words kEthernetLength = each(packet::EthernetView::kHeaderLength);
constexpr Words kHeader = each(packet::Ipv4View::kHeaderLength);
constexpr Words kLastHost = each(223);  // addresses from 224.0.0.0 on are groups and worse
constexpr Words kLoopback = each(127);

// No lambdas: what an AVX2 function calls must be one.
// Without the tuning GCC loads halves, as processors before AVX2 want it.
#define WARPLINE_AVX2 gnu::target("avx2,tune=haswell")
#define WARPLINE_AVX2_INLINE [[WARPLINE_AVX2, gnu::always_inline]] inline

WARPLINE_AVX2_INLINE __m256i load(const void* bytes) { return _mm256_loadu_si256(static_cast<const __m256i*>(bytes)); }
WARPLINE_AVX2_INLINE __m256i load(const Words& words) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(words.word));
}
WARPLINE_AVX2_INLINE __m256i in_host_order(__m256i words) {
  return _mm256_xor_si256(_mm256_shuffle_epi8(words, load(kReversed)), load(kTurned));
}
/// The sum of both halves of each word.
WARPLINE_AVX2_INLINE __m256i halves(__m256i words) { return _mm256_madd_epi16(words, load(kOnes)); }

/// The first two bytes of each.
WARPLINE_AVX2_INLINE __m128i two_of_each(const std::uint8_t* const* frames) {
  std::uint16_t two[PlainBurst::kGroup];
#pragma GCC unroll 8
  for (unsigned i = 0; i < PlainBurst::kGroup; ++i) std::memcpy(&two[i], frames[i], sizeof two[i]);
  __m128i all = _mm_cvtsi32_si128(two[0]);
  all = _mm_insert_epi16(all, two[1], 1);
  all = _mm_insert_epi16(all, two[2], 2);
  all = _mm_insert_epi16(all, two[3], 3);
  all = _mm_insert_epi16(all, two[4], 4);
  all = _mm_insert_epi16(all, two[5], 5);
  all = _mm_insert_epi16(all, two[6], 6);
  return _mm_insert_epi16(all, two[7], 7);
}

}  // namespace

WARPLINE_AVX2_INLINE PlainBurst::Found PlainBurst::look_any(const PlainBurst& self, const std::uint8_t* const* frames,
                                                            const std::uint16_t* lengths, unsigned groups,
                                                            std::uint32_t* destinations) {
  const __m256i expected = load(self.expected_);
  const __m128i first = _mm_set1_epi16(static_cast<short>(self.first_));
  __m256i sum_of_lengths = _mm256_setzero_si256();
  std::uint64_t plain = 0;
  for (unsigned group = 0; group < groups; ++group) {
    const __m256i length = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(lengths)));
    const __m128i firsts = _mm_cmpeq_epi16(two_of_each(frames), first);
    __m256i row[kGroup];
    __m256i other = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (unsigned i = 0; i < kGroup; ++i) {
      row[i] = _mm256_xor_si256(load(frames[i] + kBegin), expected);
      other = _mm256_or_si256(other, row[i]);
    }
    // Turned over: words 3 to 7 of each row are the IP header. A vector's lower half has words 0 to 3.
    __m256i low[4], high[4];  // words 0 1 | 4 5, and 2 3 | 6 7, of rows 2i and 2i + 1
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; ++i) {
      low[i] = _mm256_unpacklo_epi32(row[2 * i], row[2 * i + 1]);
      high[i] = _mm256_unpackhi_epi32(row[2 * i], row[2 * i + 1]);
    }
    const __m256i front7 = _mm256_unpackhi_epi64(high[0], high[1]), back7 = _mm256_unpackhi_epi64(high[2], high[3]);
    const __m256i destination = _mm256_permute2x128_si256(front7, back7, 0x31);
    const __m256i version_and_length = _mm256_permute2x128_si256(front7, back7, 0x20);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(destinations), in_host_order(destination));
    __m256i sum = _mm256_add_epi32(halves(destination), load(kTaken));
    sum = _mm256_add_epi32(sum, halves(version_and_length));
    const __m256i source = _mm256_permute2x128_si256(_mm256_unpacklo_epi64(high[0], high[1]),
                                                     _mm256_unpacklo_epi64(high[2], high[3]), 0x31);
    sum = _mm256_add_epi32(sum, halves(source));
    const __m256i identification =
        _mm256_permute2x128_si256(_mm256_unpacklo_epi64(low[0], low[1]), _mm256_unpacklo_epi64(low[2], low[3]), 0x31);
    sum = _mm256_add_epi32(sum, halves(identification));
    const __m256i life_and_checksum =
        _mm256_permute2x128_si256(_mm256_unpackhi_epi64(low[0], low[1]), _mm256_unpackhi_epi64(low[2], low[3]), 0x31);
    sum = _mm256_add_epi32(sum, halves(life_and_checksum));
    // A sum of ten words, not all 0, that is a multiple of 65535, as it must be (RFC 1071), is 65535 if folded once.
    sum = _mm256_add_epi32(_mm256_and_si256(sum, load(kLow)), _mm256_srli_epi32(sum, 16));

    sum_of_lengths = _mm256_add_epi32(sum_of_lengths, length);
    const __m256i total = _mm256_and_si256(in_host_order(version_and_length), load(kLow));
    const __m256i from = _mm256_and_si256(source, load(kByte));
    __m256i bad = _mm256_cmpgt_epi32(_mm256_add_epi32(total, load(kEthernetLength)), length);
    bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(load(kHeader), total));
    bad = _mm256_or_si256(bad, _mm256_cmpgt_epi32(from, load(kLastHost)));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(from, load(kLoopback)));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(from, _mm256_setzero_si256()));
    const __m256i good = _mm256_andnot_si256(bad, _mm256_cmpeq_epi32(sum, load(kLow)));
    const unsigned right = static_cast<unsigned>(_mm256_movemask_epi8(good)) &
                           (static_cast<unsigned>(_mm_movemask_epi8(firsts)) | 0xffff0000U);
    const auto expected_there = static_cast<unsigned>(_mm256_testz_si256(other, load(kFixed)));
    plain |= std::uint64_t{static_cast<unsigned>(right == UINT32_MAX) & expected_there} << group;
    frames += kGroup;
    lengths += kGroup;
    destinations += kGroup;
  }
  __m128i bytes = _mm_add_epi32(_mm256_castsi256_si128(sum_of_lengths), _mm256_extracti128_si256(sum_of_lengths, 1));
  bytes = _mm_add_epi32(bytes, _mm_unpackhi_epi64(bytes, bytes));
  bytes = _mm_add_epi32(bytes, _mm_srli_epi64(bytes, 32));
  return {plain, static_cast<std::uint32_t>(_mm_cvtsi128_si32(bytes))};
}

[[WARPLINE_AVX2]] PlainBurst::Found PlainBurst::look_avx2(const PlainBurst& self, const std::uint8_t* const* frames,
                                                          const std::uint16_t* lengths, unsigned groups,
                                                          std::uint32_t* destinations) {
  return look_any(self, frames, lengths, groups, destinations);
}

/// The same with twice the registers, and half of the instructions for what is combined.
[[gnu::target("avx512f,avx512vl,avx512bw,avx2,tune=haswell")]] PlainBurst::Found PlainBurst::look_avx512(
    const PlainBurst& self, const std::uint8_t* const* frames, const std::uint16_t* lengths, unsigned groups,
    std::uint32_t* destinations) {
  return look_any(self, frames, lengths, groups, destinations);
}
#undef WARPLINE_AVX2_INLINE
#undef WARPLINE_AVX2
#endif

}  // namespace warpline::router
