// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "warpline/base/frame.h"
#include "warpline/packet/frame_bytes.h"

namespace warpline::flow {

/// Payloads of at least so many bytes are written past the caches, because a frame is read much later, on another core,
/// and a line that is written whole need not be fetched before.
inline constexpr std::uint32_t kStreamedPayload = 256;

/// Copies `length` bytes without leaving them in the caches, where `to` is aligned to 16 bytes; fence_payloads() comes
/// before whoever reads them.
inline void stream_payload(std::uint8_t* to, const std::uint8_t* from, std::uint32_t length) {
#if defined(__x86_64__)
  if (length >= kStreamedPayload && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    std::uint32_t i = 0;
    for (; i + 64 <= length; i += 64) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 16));
      const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 32));
      const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + 48));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), a);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 16), b);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 32), c);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + 48), d);
    }
    to += i;
    from += i;
    length -= i;
  }
#endif
  std::memcpy(to, from, length);
}

/// Makes streamed payloads visible to threads that see what this one writes from now on.
inline void fence_payloads() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Copies bytes `[offset, offset + length)` of the packet, which has them, to `to`.
inline void copy_payload(std::uint8_t* to, FrameRef packet, std::uint32_t offset, std::uint32_t length) {
  if (packet.count == 1) [[likely]] {
    stream_payload(to, packet.data() + offset, length);
  } else {
    static_cast<void>(packet::gather(packet, offset, length, to));
  }
}

}  // namespace warpline::flow
