# SPDX-License-Identifier: Apache-2.0
# Turns the stanzas of apt's *.sources files into source stanzas: those of the distribution itself (-v codename). All
# fields but Types are kept, keys and continuation lines with them.
function finish(  i, words, n, ours) {
  n = split(suites, words, /[ \t]+/)
  for (i = 1; i <= n; ++i) {
    if (words[i] == codename || index(words[i], codename "-") == 1 ||
        words[i] ~ /^(oldstable|stable|testing|unstable|sid)/) ours = 1
  }
  if (ours && enabled && body != "") printf "Types: deb-src\n%s\n", body
  body = suites = ""
  enabled = 1
}
BEGIN { enabled = 1 }
FNR == 1 || /^[ \t]*$/ { finish() }
/^[ \t]*$/ || /^#/ { next }
{ lower = tolower($0) }
lower ~ /^types:/ { next }
lower ~ /^enabled:[ \t]*(no|false|0|off|without|disable)/ { enabled = 0 }
{
  body = body $0 "\n"
  if (lower ~ /^suites:/) { in_suites = 1; suites = substr($0, 8) }
  else if (/^[ \t]/ && in_suites) suites = suites " " $0
  else in_suites = 0
}
END { finish() }
