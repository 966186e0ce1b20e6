// SPDX-License-Identifier: Apache-2.0
// A driver plugin that DPDK cannot load: it logs, then panics, as one whose driver is registered already does.
#include <rte_debug.h>
#include <rte_log.h>

[[gnu::constructor]] static void load() {
  rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "EAL: the plugin looks at the machine\n");
  rte_panic("the plugin cannot be loaded\n");
}
