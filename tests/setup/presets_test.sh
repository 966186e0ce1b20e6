#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The presets that no other test builds are built, and their programs forward and verify packets.
set -euo pipefail
cd "$(dirname "$0")/../.."
for preset in static static-nocuda; do
  setup/build "$preset" warpline
  program=build/$preset/apps/warpline/warpline
  said=$(ldd "$program")
  if grep librte_ <<<"$said"; then
    echo "FAILED: $program needs libraries of DPDK, which are to be in it"
    exit 1
  fi
  "$program" forward --loopback --packets 100000 --no-hugepages
done
