// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/device.h"

#include <atomic>

namespace warpline::gpu {
namespace {

std::atomic<bool> abandoned{false};

}  // namespace

void abandon_gpus() { abandoned.store(true, std::memory_order_release); }
bool gpus_abandoned() { return abandoned.load(std::memory_order_acquire); }

}  // namespace warpline::gpu
