// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interrupt that tells of a link which a fault has moved: whoever runs the engine raises it (wire/link.h), and
// EAL's interrupt thread tells ethdev's callbacks, which may not run inside a burst call. Raised again before it was
// served, it is served once, as a real one.
namespace warpline::vnic {

/// From now on it can be raised for any port of the process; once is enough. 0 or a negative errno. Control threads.
[[nodiscard]] int open_link_interrupt();

/// For a port that is not registered any more: when this returns it is not being served, unless by the caller.
void finish_link_interrupts();

}  // namespace warpline::vnic
