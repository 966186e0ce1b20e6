// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline::vnic {

/// One line, without newline at its end, to DPDK's log as pmd.net.vnic. Never on the data path.
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_notice(const char* format, ...);

}  // namespace warpline::vnic
