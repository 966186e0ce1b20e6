# SPDX-License-Identifier: Apache-2.0
# Turns the one-line entries of apt's *.list files into source entries: those of the distribution itself (-v codename).
$1 != "deb" && $1 != "deb-src" { next }
{
  options = ""
  rest = $0
  sub(/^[ \t]*deb(-src)?[ \t]+/, "", rest)
  if (rest ~ /^\[/) {
    options = substr(rest, 1, index(rest, "]")) " "
    rest = substr(rest, index(rest, "]") + 1)
  }
  split(rest, field, /[ \t]+/)
  suite = (field[1] == "") ? field[3] : field[2]
  sub(/^[ \t]+/, "", rest)
  if (suite == codename || index(suite, codename "-") == 1 || suite ~ /^(oldstable|stable|testing|unstable|sid)/) {
    entry = "deb-src " options rest
    if (!seen[entry]++) print entry
  }
}
