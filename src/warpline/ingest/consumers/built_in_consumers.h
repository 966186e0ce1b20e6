// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include "warpline/ingest/consumers/byte_sum.h"
#include "warpline/ingest/consumers/pattern_check.h"

#include WARPLINE_USER_CONSUMER  // defines UserConsumer

namespace warpline::ingest {

static_assert(Consumer<PatternCheck> && Consumer<ByteSum>);
static_assert(Consumer<UserConsumer> && std::default_initializable<UserConsumer>);

}  // namespace warpline::ingest
