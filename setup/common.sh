# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the set-up scripts share; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Toolchain pieces that no package holds live outside the checkout: a fresh clone need not fetch them again.
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/warpline
log=$root/build/setup.log
export LC_ALL=C.UTF-8

say() { printf 'setup: %s\n' "$*" >&2; }

# Runs a command with all it prints going to the log; on failure shows the log's end.
logged() {
  mkdir -p "$(dirname "$log")"
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null && return 0
  local status=$?
  say "failed ($status): $*"
  tail -n 12 "$log" | sed 's/^/  | /' >&2
  say "the whole log is in $log"
  return $status
}

# The newest installed NAME-<version> of a Clang tool, 19 before all others.
clang_tool() {
  local version
  for version in 19 20 18 17 16; do
    if command -v "$1-$version" >/dev/null; then
      printf '%s-%s\n' "$1" "$version"
      return 0
    fi
  done
  return 1
}
