// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/payload/payload_orders.h"

namespace warpline::stream {

/// CTAs of make_payload_kernel(), and how many of them share an order.
inline constexpr unsigned kMakeCtas = 64;
inline constexpr unsigned kMakeCtasAnOrder = 16;
inline constexpr unsigned kMakeThreads = 256;  ///< of a CTA
/// CTAs of fill_payload_kernel(), a warp for each segment of a full batch: on as many multiprocessors as that allows,
/// for each of them has so many reads under way.
inline constexpr unsigned kFillCtas = 32;
inline constexpr unsigned kFillThreads = 64;  ///< of a CTA

// Where no device code is built they are not defined.

/// Returns the address of the __global__ function (const std::uint8_t* table, std::uint64_t seed, const MakeOrder*,
/// std::uint32_t count), of kMakeCtas CTAs: makes bytes of SeededPayload, whose table and mixed seed these are. Orders
/// do not overlap.
[[nodiscard]] const void* make_payload_kernel();

/// Returns the address of the __global__ function (const FillOrder*, std::uint32_t count, std::uint32_t* ended,
/// std::uint64_t* done, std::uint64_t number): carries out the orders, and then writes `number` to `done`, in pinned
/// memory. `ended` is a word of the GPU's, 0 at first. One launch at a time.
[[nodiscard]] const void* fill_payload_kernel();

}  // namespace warpline::stream
