// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_mbuf.h>

// Debug builds watch that no mbuf is posted twice: a bit for each mbuf that stands in a receive ring, of all ports of
// the process. Release builds have none of it.
namespace warpline::vnic {

#ifdef NDEBUG

class PostedSet {
 public:
  void admit(const rte_mbuf* /*mbuf*/) {}
  void insert(const rte_mbuf* /*mbuf*/) {}
  void remove(const rte_mbuf* /*mbuf*/) {}
};

#else

/// Any thread, lock-free. What breaks the rule ends the process, with the mbuf's name on stderr.
class PostedSet {
 public:
  /// At set-up: there may be this mbuf.
  void admit(const rte_mbuf* mbuf);
  /// It is posted.
  void insert(const rte_mbuf* mbuf);
  /// It was taken out of the ring.
  void remove(const rte_mbuf* mbuf);
};

#endif

inline PostedSet posted_set;

}  // namespace warpline::vnic
