#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# newer_dpdk_test.sh FOLDER: what names DPDK compiles against the newer public headers in FOLDER, which setup/newer_dpdk
# unpacks, and of recycling it is the part for DPDK 23.11 and later that is compiled. Exit 77: they are not there.
set -euo pipefail
folder=$1
cd "$(dirname "$0")/../.."
if [ ! -f "$folder/version" ]; then
  echo "skipped: no headers in $folder; setup/newer_dpdk fetches them, and could not, or was not run"
  exit 77
fi
version=$(<"$folder/version")
# The same folder each time: a compiler cache knows the sources by their paths.
work=$PWD/build/newer_dpdk/${folder##*/}
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

read -ra flags <"$folder/flags"
read -ra libraries < <(pkg-config --cflags fmt spdlog)
compile=(g++ -std=c++20 -O0 -Wall -Wextra -Werror -Wno-subobject-linkage -Isrc -Idrivers -Iapps/warpline "${flags[@]}" "${libraries[@]}"
  "-DWARPLINE_USER_WORKLOAD=\"$PWD/examples/decrement_ttl.h\"" '-DWARPLINE_VERSION="0"' '-DWARPLINE_BUILD_TYPE="test"')
! command -v ccache >/dev/null || compile=(ccache "${compile[@]}")

# Those of a folder as one, as the presets compile those of a module: most of the time goes into headers.
mapfile -t sources < <(grep -lr --include='*.cc' rte_ src apps/warpline | grep -vE '_(test|bench|cuda)\.cc$' | sort)
for source in "${sources[@]}"; do
  printf '#include "%s"\n' "$PWD/$source" >>"$work/$(dirname "$source" | tr / _).cc"
done
printf '%s\n' "$work"/*.cc | xargs -P "$(nproc)" -I SOURCE sh -c '
  source=$1
  shift
  exec "$@" -c "$source" -o "${source%.cc}.o"' sh SOURCE "${compile[@]}"

if nm -u "$work"/*.o | grep -E ' U _Z[0-9]+rte_'; then
  echo "FAILED: DPDK $version declares these without C linkage, so that programs that call them do not link"
  exit 1
fi
if ! nm -C "$work/src_warpline_memory.o" | grep -q 'U rte_eth_recycle_rx_queue_info_get'; then
  echo "FAILED: against DPDK $version src/warpline/memory/recycle_ethdev.cc does not call rte_eth_recycle_mbufs"
  exit 1
fi
echo "${#sources[@]} files compile against DPDK $version, with its own recycling"
