// SPDX-License-Identifier: Apache-2.0
#include "page/page.h"

namespace warpline::page {

const char* style() {
  // Colours of text have a contrast of 4.5 at least with what they stand on, in both schemes.
  return R"css(:root {
  --paper: #f4f5f7; --card: #fff; --ink: #1a2027; --soft: #56606b; --rule: #dfe3e8; --shade: #f0f2f5;
  --accent: #0a5bb5; --peer: #a34a00; --met: #156a35; --met-back: #e2f4e7; --missed: #b3202a; --missed-back: #fde8e8;
  --other-back: #e9ecf0; --s2: #6b3fa0; --s3: #0f766e; --s4: #b3202a; --s5: #7a6000; --s6: #9d2f78; --s7: #47525e;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0e1216; --card: #161b21; --ink: #e4e8ec; --soft: #a3adb8; --rule: #2c343d; --shade: #1d242b;
    --accent: #74b6ff; --peer: #f3a562; --met: #6bd98a; --met-back: #12301d; --missed: #ff8f94; --missed-back: #3b1a1d;
    --other-back: #29313a; --s2: #c3a2f5; --s3: #5fd3c6; --s4: #ff8f94; --s5: #dfc258; --s6: #f29bd2; --s7: #b5bfca;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: break-word;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: clamp(1.6rem, 4vw, 2.4rem); line-height: 1.2; letter-spacing: -.02em; margin: 2.2rem 0 1rem; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -.01em; margin: 0 0 .8rem; }
h3 { font-size: 1.1rem; margin: 1.8rem 0 .6rem; }
h4, h5, h6 { font-size: 1rem; margin: 1.3rem 0 .5rem; }
h5, h6 { color: var(--soft); }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
main > section, article, .guide {
  background: var(--card); border: 1px solid var(--rule); border-radius: 12px; padding: 1.2rem clamp(.75rem, 3vw, 1.8rem); margin: 0 0 1.2rem;
}
.guide { padding-block: .7rem; }
.guide ul { list-style: none; padding: 0; }
.guide li { margin: .35rem 0; }
section > section { padding-left: clamp(0rem, 1vw, .8rem); }
code, pre { font: .86em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre.command {
  margin: .2rem 0 .9rem; padding: .7rem .9rem; background: var(--shade); border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere;
  user-select: all;
}
.again { margin: .9rem 0 0; color: var(--soft); font-size: .88rem; }
dl.facts { display: flex; flex-wrap: wrap; gap: .45rem 1.6rem; margin: .4rem 0 .8rem; }
dl.facts > div { min-width: 0; max-width: 100%; }
dt { color: var(--soft); font-size: .8rem; line-height: 1.3; }
dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
details { margin: .5rem 0; min-width: 0; }
summary { cursor: pointer; color: var(--accent); padding: .15rem 0; }
.none, .zero { color: var(--soft); }
.sum { display: flex; flex-wrap: wrap; gap: .8rem; font-size: 1.15rem; margin: 0 0 .4rem; }
.sum span { padding: .35rem .95rem; border-radius: 10px; }
.sum data { font-size: 1.7rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.sum .met, .badge.met { background: var(--met-back); color: var(--met); }
.sum .missed, .badge.missed { background: var(--missed-back); color: var(--missed); }
td.met { color: var(--met); } td.missed { color: var(--missed); font-weight: 650; }
.badge { display: inline-block; padding: 0 .55rem; border-radius: 1rem; font-size: .82rem; line-height: 1.6; white-space: nowrap; }
.badge::before { content: "– " / ""; } .badge.met::before { content: "✓ " / ""; } .badge.missed::before { content: "✗ " / ""; }
.badge.neutral { background: var(--other-back); color: var(--ink); }
ul.verdicts { list-style: none; padding: 0; margin: .4rem 0; }
ul.verdicts li { display: flex; gap: .7rem; align-items: baseline; padding: .3rem 0; border-top: 1px solid var(--rule); }
ul.verdicts li:first-child { border-top: 0; }
ul.verdicts .badge { flex: 0 0 auto; min-width: 5.4rem; text-align: center; }
ul.verdicts li > span:last-child { min-width: 0; overflow-wrap: anywhere; }
.evidence, .of { color: var(--soft); font-size: .9rem; font-variant-numeric: tabular-nums; }
.evidence::before { content: "— "; }
.of::before { content: "in "; }
.scroll { overflow: auto; max-height: 34rem; margin: .6rem 0 1rem; border: 1px solid var(--rule); border-radius: 8px; min-width: 0; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .5rem .7rem; color: var(--soft); font-size: .85rem; }
th, td { padding: .38rem .7rem; text-align: left; vertical-align: top; border-top: 1px solid var(--rule); }
thead th { position: sticky; top: 0; background: var(--shade); font-weight: 600; vertical-align: bottom; z-index: 1; white-space: nowrap; }
tbody th { font-weight: 500; min-width: 9rem; max-width: 24rem; overflow-wrap: anywhere; }
td { white-space: nowrap; }
td .long, td details { display: block; white-space: normal; min-width: 16rem; }
.all { overflow-x: auto; margin: .6rem 0; }
.all td { white-space: normal; } .all td:nth-child(2) { min-width: 11rem; } .all .date { white-space: nowrap; }
tbody tr:hover > * { background: var(--shade); }
small { color: var(--soft); font-size: .92em; }
.computed { color: var(--s2); font-style: italic; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 23rem), 1fr)); gap: 1rem 1.6rem; align-items: start; margin: .4rem 0; }
.plot { margin: .4rem 0; min-width: 0; }
figcaption { font-weight: 600; font-size: .95rem; margin-bottom: .1rem; overflow-wrap: anywhere; }
.unit { color: var(--soft); font-weight: 400; font-size: .88rem; }
.common { color: var(--soft); font-size: .88rem; margin-bottom: 0; }
.beyond { color: var(--soft); font-size: .85rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; padding: 0; margin: .2rem 0; font-size: .85rem; }
.key { vertical-align: -2px; margin-right: .4em; }
.symbols { position: absolute; }
.plot > svg { display: block; font-size: 12px; overflow: hidden; }
.plot text { fill: var(--ink); stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; paint-order: stroke; }
.plot .value { font-weight: 600; text-anchor: end; }
.plot .tick { fill: var(--soft); font-size: 11px; }
.plot .grid { stroke: var(--rule); } .plot .zero { stroke: var(--soft); }
line.limit { stroke: var(--missed); stroke-width: 1.5; } text.limit { fill: var(--missed); }
line.ceiling { stroke: var(--soft); stroke-width: 1.5; stroke-dasharray: 2 3; } text.ceiling { fill: var(--soft); }
.plot path { fill: none; vector-effect: non-scaling-stroke; }
.plot path.bars { stroke-width: 7; opacity: .18; }
.plot path.intervals { stroke-width: 3; stroke-linecap: round; opacity: .65; }
.plot path.marks { stroke-width: 10; stroke-linecap: round; }
.plot path.samples { stroke-width: 3; stroke-linecap: round; opacity: .35; }
.hollow { fill: var(--card); stroke-width: 2; }
.r0, .s0 { fill: var(--accent); stroke: var(--accent); } .r1, .s1 { fill: var(--peer); stroke: var(--peer); }
.r2 { fill: var(--soft); stroke: var(--soft); }
.s2 { fill: var(--s2); stroke: var(--s2); } .s3 { fill: var(--s3); stroke: var(--s3); } .s4 { fill: var(--s4); stroke: var(--s4); }
.s5 { fill: var(--s5); stroke: var(--s5); } .s6 { fill: var(--s6); stroke: var(--s6); } .s7 { fill: var(--s7); stroke: var(--s7); }
use { stroke-width: 0; }
.up { font-size: .88rem; margin-top: 1.2rem; }
footer { color: var(--soft); font-size: .88rem; padding-bottom: 2rem; }
@media print { .scroll { max-height: none; overflow: visible; } main > section, article { break-inside: avoid-page; } }
)css";
}

}  // namespace warpline::page
