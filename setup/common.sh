# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What the set-up scripts share; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Toolchain pieces that no package holds live outside the checkout: a fresh clone need not fetch them again.
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/warpline
log=$root/build/setup.log
export LC_ALL=C.UTF-8

# --help: what stands at the head of the script.
if [ "${1:-}" = --help ]; then
  sed -n '3,/^[^#]/s/^# //p' "$0"
  exit
fi

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

# python_packages PINS FOLDER WHAT PROBE: has the PyPI packages of PINS, each with its hashes, in FOLDER, for the system's
# Python; fetches them where they are not, or are of another version of it. PROBE: Python that must run with them.
python_packages() {
  local pins=$1 target=$2 what=$3 probe=$4 version fresh
  version=$(/usr/bin/python3 -c 'import sys; print(*sys.version_info[:2], sep=".")')
  [ "$(cat "$target/installed" 2>/dev/null)" != "$(cat "$pins") $version" ] || return 0
  say "fetching $what into $target"
  fresh=$target.$$
  mkdir -p "$fresh"
  if ! logged /usr/bin/python3 -m pip install --quiet --no-deps --no-compile --require-hashes --only-binary :all: --target "$fresh" -r "$pins" ||
    ! logged env PYTHONPATH="$fresh" /usr/bin/python3 -c "$probe"; then
    rm -rf "$fresh"
    return 1
  fi
  printf '%s %s\n' "$(cat "$pins")" "$version" >"$fresh/installed"
  rm -rf "$target"
  mv "$fresh" "$target"
}

# dpdk_source VERSION FOLDER: unpacks that version of the distribution's source package of DPDK into FOLDER/source, by the
# machine's own package sources as source entries, in an apt state of FOLDER's.
dpdk_source() {
  local version=$1 folder=$2 codename apt
  mkdir -p "$folder"/{lists/partial,archives/partial,parts}
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  (
    shopt -s nullglob
    awk -v codename="$codename" -f "$root/setup/source_list.awk" \
      /etc/apt/sources.lis[t] /etc/apt/sources.list.d/*.list /dev/null >"$folder/sources.list"
    awk -v codename="$codename" -f "$root/setup/source_deb822.awk" \
      /etc/apt/sources.list.d/*.sources /dev/null >"$folder/parts/machine.sources"
  )
  apt=(apt-get -o "Dir::Etc::SourceList=$folder/sources.list" -o "Dir::Etc::SourceParts=$folder/parts"
    -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder" -o Acquire::Languages=none)
  [ "$(id -u)" -ne 0 ] || apt+=(-o APT::Sandbox::User=root)
  logged "${apt[@]}" update || say "not every package source answered; going on with those that did"
  if ! (cd "$folder" && logged "${apt[@]}" source --download-only "dpdk=$version"); then
    say "no package source holds dpdk $version; if the distribution has a newer one: apt-get install libdpdk-dev"
    return 1
  fi
  (cd "$folder" && logged dpkg-source --no-check -x dpdk_*.dsc source)
}

# release_entries SUITE FOLDER: the distribution's own archive as the machine's apt knows it, with its keys, but of another
# release: FOLDER/sources.list and FOLDER/parts/machine.sources.
release_entries() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  shopt -s nullglob
  awk -v codename="$codename" -f "$root/setup/source_list.awk" \
    /etc/apt/sources.lis[t] /etc/apt/sources.list.d/*.list /dev/null |
    sed -En "s/^deb-src (.*) $codename /deb \1 $1 /p" >"$2/sources.list"
  awk -v codename="$codename" -f "$root/setup/source_deb822.awk" \
    /etc/apt/sources.list.d/*.sources /dev/null |
    awk -v RS= -v ORS='\n\n' -v suite="$1" -v own="\nSuites:([^\n]* )?$codename( |\n)" \
      '$0 "\n" ~ own { sub(/^Types: deb-src/, "Types: deb"); sub(/\nSuites:[^\n]*/, "\nSuites: " suite); print }' \
      >"$2/parts/machine.sources"
}

# lend_network FOLDER: what this machine's package clients need on its network holds in that root too: names, certificates
# that its administrator trusts, proxies, pip's index.
lend_network() {
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
  if [ -d /usr/local/share/ca-certificates ] && [ -x "$1/usr/sbin/update-ca-certificates" ]; then
    cp -rL /usr/local/share/ca-certificates "$1/usr/local/share/"
    logged chroot "$1" update-ca-certificates
  fi
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$1/etc/"
  apt-config dump --format '%F "%v";%n' Acquire::http::Proxy Acquire::https::Proxy >"$1/etc/apt/apt.conf.d/99proxy"
}
