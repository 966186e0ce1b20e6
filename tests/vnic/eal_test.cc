// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/eal_environment.h"

// The EAL of all tests of this program.
const auto* const kEal =
    testing::AddGlobalTestEnvironment(new warpline::runtime::EalEnvironment(1, warpline::Bytes{512 << 20}));
