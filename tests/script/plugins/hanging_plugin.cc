// SPDX-License-Identifier: Apache-2.0
// A library that never finishes loading: a driver plugin of DPDK, or, by the name libcuda.so.1, a GPU's driver.
#include <unistd.h>

[[gnu::constructor]] static void load() {
  for (;;) pause();
}
