// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace warpline {

/// False where the threads of a forked child do not run: ThreadSanitizer follows none after a fork of several threads.
inline constexpr bool kForkedThreadsRun =
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    false;
#else
    true;
#endif
#else
    true;
#endif

}  // namespace warpline
