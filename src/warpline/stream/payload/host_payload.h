// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/stream/payload/payload_orders.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {

/// Carries out an order on the calling thread. What GPUs do is held against it.
void make_payload(const SeededPayload& payload, const MakeOrder& order);
/// Likewise.
void fill_payload(const FillOrder& order);

}  // namespace warpline::stream
