# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium: nothing on the console, nothing that overflows or cannot be read, at a telephone's width
and a screen's, in the light and in the dark."""

import json
import unittest
from pathlib import Path

import browser
from support.case import Case

ROOT = Path(__file__).resolve().parents[2]
LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")
# A scheme has colours alone, and a width the places of things: each is looked at once.
LOOKS_AT = ((360, "light"), (1600, "dark"))

HARD_TO_DRAW = {
    "benchmark": "<script>console.error('markup')</script>",
    "command": "bench " + "x" * 400,
    "date": "2026-01-01",
    "host": {"cpu": "W" * 200},
    "longest_word_" * 12: "y" * 300,
    "steps": [
        {
            "name": "names " * 40,
            "unit": "<b>&amp;",
            "limit": 5e-7,
            "setups": {"wwwwwwwwww" * 9: {"median": 1e-7}, "b": {"median": 123456789.123, "low": 1, "high": 2e9}},
        }
    ],
    "ceilings": {"a_gbps": 1, "b_gbps": 1e9},
    "numbers": [1, 2.5, -3],
    "mixed": [[1], {"a": None}, "text", []],
    "verdicts": [{"expected": "z" * 300, "seen": "q" * 300, "met": False}],
}


@unittest.skipUnless(browser.find_browser(), "no Chromium here; setup/packages setup/test_packages.txt installs it")
class Looks(Case):
    @classmethod
    def setUpClass(cls):
        cls.chromium = cls.enterClassContext(browser.Browser())
        cls.chromium.open_tab()

    def look_at(self, page):
        self.chromium.load(page.as_uri())
        for width, scheme in LOOKS_AT:
            with self.subTest(width=width, scheme=scheme):
                self.chromium.show(width, scheme)
                self.assertEqual(self.chromium.evaluate("innerWidth"), width)
                self.assertTrue(self.chromium.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches"))
                self.assertEqual(self.chromium.evaluate(LOOKS), [])
                self.assertEqual(self.chromium.complaints(), [])

    def page_of(self, *files):
        page = self.scratch.path / "page.html"
        outcome = self.warpline("report", *files, "--html", page)
        self.assertEqual(outcome.code, 0, outcome)
        return page

    def test_all_kept_results(self):
        self.look_at(self.page_of(*sorted((ROOT / "bench" / "results").glob("*.json"))))

    def test_a_run(self):
        report = self.warpline("forward", "--loopback", "--packets", 1000, "--json")
        self.assertEqual(report.code, 0, report)
        path = self.scratch.path / "run.json"
        path.write_text(report.stdout, encoding="utf-8")
        self.look_at(self.page_of(path))

    def test_what_is_hard_to_draw(self):
        path = self.scratch.path / "hard.json"
        path.write_text(json.dumps(HARD_TO_DRAW), encoding="utf-8")
        self.look_at(self.page_of(path))

    def test_the_test_sees_what_is_wrong(self):
        """A page with every fault that is looked for."""
        page = self.scratch.path / "bad.html"
        page.write_text(
            "<!DOCTYPE html><body style='background:#fff'><script>console.error('x')</script><a href='#nowhere'>to</a>"
            "<p style='width:9999px;color:#ddd'>pale</p><table><tr><td>1</table></body>",
            encoding="utf-8",
        )
        self.chromium.load(page.as_uri())
        self.chromium.show(360, "light")
        faults = "\n".join(self.chromium.evaluate(LOOKS))
        for fault in ("wide in", "beyond the window", "contrast of", "no caption", "leads nowhere", "not text"):
            self.assertIn(fault, faults)
        self.assertEqual(len(self.chromium.complaints()), 1)


if __name__ == "__main__":
    unittest.main()
