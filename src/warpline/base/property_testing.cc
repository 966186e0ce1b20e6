// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/property_testing.h"

WARPLINE_ALL_GENERATORS()

namespace warpline {

void check_property(void (*property)()) { rc::detail::checkGTest(property); }

}  // namespace warpline
