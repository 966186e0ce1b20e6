#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figure check passes a document that says what its results say, and finds each kind of error in one that does not."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "setup" / "check_figures"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_figures", str(SCRIPT))
check_figures = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_figures", loader))
loader.exec_module(check_figures)

RESULT = {
    "rate": {"median": 353.57, "ci95": [352.26, 354.58], "samples": [1.0, 2.0, 4.0]},
    "ratio": {"median": 0.7740, "low": 0.766, "high": 0.781},
    "off": {"median": 17.6, "samples": [2.0, 8.0, 4.0]},
    "fast-free": {"median": 14.2},
    "requests": 8343965.07,
    "name": "rate",
    "many": [3, 5],
    "steps": [{"name": "a", "size": 64, "mpps": 10.04}, {"name": "b", "size": 64, "mpps": -2.5}],
    "setups": {"64 B, 14 pipelines": 354.0, "64 B, 7 pipelines": 333.0, "at 14.8Mpps, 7": 9.5},
}


class CheckFigures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("bench/results/run.json", json.dumps(RESULT))
        self.write("README.md", "# It\n\n## Results\n\n## Status\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def check(self, text):
        self.write("docs/page.md", "# Page\n\n" + text + "\n")
        return check_figures.check(self.root)

    def good(self, text, held):
        self.assertEqual(self.check(text), (held, []))

    def wrong(self, text, *parts):
        _, wrongs = self.check(text)
        self.assertEqual(len(wrongs), 1, wrongs)
        for part in ("docs/page.md:3: ", *parts):
            self.assertIn(part, wrongs[0])

    def test_a_figure_is_the_value_rounded_to_its_digits(self):
        self.good("354 <!-- figure: run.json rate.median -->", 1)
        self.good("353.6 <!-- figure: run.json rate.median -->", 1)
        self.good("8,343,965 <!-- figure: run.json requests -->", 1)
        self.good("-2.5 <!-- figure: run.json steps[name=b].mpps -->", 1)
        for text in ("353", "353.5", "353.67", "35.4", "-354"):
            self.wrong(f"{text} <!-- figure: run.json rate.median -->", f"{text} is printed", "353.57")

    def test_an_interval_is_compared_too(self):
        self.good("354 [352, 355] <!-- figure: run.json rate -->", 1)
        self.good("0.77 % [0.766, 0.78] <!-- figure: run.json ratio -->", 1)
        self.good("354 <!-- figure: run.json rate -->", 1)
        self.wrong("354 [351, 355] <!-- figure: run.json rate -->", "351 is printed")
        self.wrong("354 [352, 354] <!-- figure: run.json rate -->", "354 is printed", "354.58")

    def test_an_interval_of_a_result_that_has_none(self):
        _, wrongs = self.check("17.6 [17, 18] <!-- figure: run.json off -->")
        self.assertIn("has no interval", wrongs[0])

    def test_arithmetic(self):
        self.good("-23 % [-23.4, -21.9] <!-- figure: run.json (ratio - 1) * 100 -->", 1)
        self.good("23 % [21.9, 23.4] <!-- figure: run.json (1 - ratio) * 100 -->", 1)
        self.good("8.34 million <!-- figure: run.json requests / 1e6 -->", 1)
        self.good("3.4 <!-- figure: run.json off - fast-free -->", 1)
        self.good("0.5 <!-- figure: run.json median(rate.samples / off.samples) -->", 1)
        self.good("7 <!-- figure: run.json 1 + 2 * 3 -->", 1)
        self.wrong("7 <!-- figure: run.json rate.median / 0 -->", "division by zero")

    def test_several_figures_of_a_row_in_their_order(self):
        self.good("| 64 | 17.6 | 14.2, 10.0 <!-- figure: run.json {off,fast-free}; steps[name=a].mpps --> | 9 |", 3)
        _, wrongs = self.check("| 64 | 17.6 | 14.2 <!-- figure: run.json {fast-free,off} --> |")
        self.assertEqual(len(wrongs), 2, wrongs)
        self.wrong("17.6 <!-- figure: run.json {off,fast-free} -->", "a mark for 2 figures behind 1")

    def test_a_mark_takes_only_figures_of_its_line_behind_the_mark_before(self):
        self.good("17.6 <!-- figure: run.json off --> and 14.2 <!-- figure: run.json fast-free -->", 2)
        self.wrong("17.6 <!-- figure: run.json off --> and that <!-- figure: run.json off -->", "a mark for 1 figures behind 0")
        _, wrongs = self.check("17.6\n<!-- figure: run.json off -->")
        self.assertIn("docs/page.md:4: ", wrongs[0])

    def test_names_in_quotes_and_what_matches_anything(self):
        self.good('354 <!-- figure: run.json setups."64 B, 14 pipelines" -->', 1)
        self.good('9.5 <!-- figure: run.json setups."at 14.8Mpps, 7" -->', 1)
        self.good('354, 333 <!-- figure: run.json setups."* {14,7} pipelines" -->', 2)

    def test_a_path_must_select_exactly_one_number(self):
        self.wrong('354 <!-- figure: run.json setups."64 B*" -->', "selects 2 values")
        self.wrong("10.0 <!-- figure: run.json steps[size=64].mpps -->", "selects 2 values")
        self.wrong("3 <!-- figure: run.json many -->", "selects 2 values")
        self.wrong("10.0 <!-- figure: run.json steps[name=c].mpps -->", "selects no values")
        self.wrong("10.0 <!-- figure: run.json steps[2].mpps -->", "selects no values")
        self.wrong("10.0 <!-- figure: run.json nothing -->", "selects no values")
        self.wrong("10.0 <!-- figure: run.json name -->", "selects no number")
        self.wrong("10.0 <!-- figure: run.json setups -->", "selects no number")
        self.good("10.0 <!-- figure: run.json steps[0].mpps -->", 1)
        self.good("10.0 <!-- figure: run.json steps[name=a,size=64].mpps -->", 1)

    def test_a_file_that_is_missing_or_broken(self):
        self.wrong("354 <!-- figure: gone.json rate -->", "there is no bench/results/gone.json")
        self.write("bench/results/broken.json", '{"rate": ')
        self.wrong("354 <!-- figure: broken.json rate -->", "bench/results/broken.json is no JSON")

    def test_a_mark_that_is_not_understood(self):
        for text in ("<!-- figures: run.json rate -->", "<!-- figure run.json rate -->", "<!-- figure: run.json -->",
                     "<!-- figure: run.json rate"):
            self.wrong(f"354 {text}", "not of the form")
        self.wrong("354 <!-- figure: run.json rate.median + -->", "is expected")
        self.wrong("354 <!-- figure: run.json (rate.median -->", "not closed")
        self.wrong("354 <!-- figure: run.json rate.median off -->", "not expected there")
        self.wrong("354 <!-- figure: run.json rate ? off -->", "not understood")
        self.wrong("354 <!-- figure: run.json {rate,off -->", "not closed")

    def test_a_figure_with_an_interval_has_a_mark(self):
        self.wrong("It took 17.6 [17, 18].", "17.6 has no mark")
        self.wrong("| 1.0 [0.9, 1.1] | 17.6 <!-- figure: run.json off --> |", "1.0 has no mark")
        self.good("It took 17.6, says `1.0 [0.9, 1.1]`, and [1.0](there) of 22.11.11.", 0)

    def test_a_column_of_measurements_has_marks(self):
        table = ("| what | target | {} |\n| --- | --- | --- |\n| burst 64 | 25 | 17.6{} |\n\n"
                 "| what | of it | and |\n| --- | --- | --- |\n| 1 | 2 | 3 |")
        self.good(table.format("measured", " <!-- figure: run.json off -->"), 1)
        self.good(table.format("met", ""), 0)
        for head in ("measured", "baseline"):
            _, wrongs = self.check(table.format(head, ""))
            self.assertEqual(len(wrongs), 1, wrongs)
            self.assertIn("docs/page.md:5: 17.6 has no mark", wrongs[0])

    def test_code_is_not_read(self):
        self.good("```\n17.6 [17, 18]\n```", 0)

    def test_the_results_of_the_readme_have_marks(self):
        for text in ("354 Mpps", "23 % less", "311 Gbit/s", "13.5 cycles per packet", "24.5 times", "2x", "11.4 us",
                     "8.3 million"):
            self.write("README.md", f"# It\n\nat 9 Mpps\n\n## Results\n\n{text}, of 14 pipelines\n\n## Status\n\n5 %\n")
            _, wrongs = self.check("354 Mpps")
            self.assertEqual(len(wrongs), 1, text)
            self.assertIn("README.md:7: ", wrongs[0])
            self.assertIn("has no mark", wrongs[0])

    def test_a_readme_without_results(self):
        self.write("README.md", "# It\n")
        self.assertEqual(self.check("")[1], ["README.md: has no section '## Results'"])

    def test_the_program_tells_errors_by_its_exit_code(self):
        for text, code in (("354", 0), ("355", 1)):
            self.write("docs/page.md", f"{text} <!-- figure: run.json rate.median -->\n")
            done = subprocess.run([SCRIPT, self.root], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertEqual(done.stdout.count("docs/page.md:1: "), code)


if __name__ == "__main__":
    unittest.main()
