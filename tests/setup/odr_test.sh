#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nothing that the program links has one name and two definitions: GCC compares all types when it links the preset `odr`,
# which it compiles for that alone. First two definitions are planted, which it has to refuse. Exit 77: no GCC.
set -euo pipefail
cd "$(dirname "$0")/../.."
macros=$(c++ -dM -E -x c++ /dev/null)
if [[ $macros != *__GNUC__* || $macros == *__clang__* ]]; then
  echo "skipped: only GCC compares types when it links"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/one.cc" <<'CODE'
namespace warpline {
struct Twice { int number; virtual int get() { return number; } };
int one() { return Twice{}.get(); }
}
CODE
cat >"$work/two.cc" <<'CODE'
namespace warpline {
struct Twice { long number; int more; virtual int get() { return more; } };
int one();
}
int main() { return warpline::Twice{}.get() + warpline::one(); }
CODE
if said=$(c++ -O1 -flto -Werror=odr "$work/one.cc" "$work/two.cc" -o "$work/both" 2>&1); then
  echo "FAILED: two definitions of one type were linked"
  exit 1
fi
for file in one.cc two.cc; do
  grep -q "$file" <<<"$said" || { echo "FAILED: $file is not named in: $said"; exit 1; }
done

setup/build odr warpline
echo "all types that the program links have one definition"
