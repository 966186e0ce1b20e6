# SPDX-License-Identifier: Apache-2.0
"""`warpline report`: what it says, what it refuses, and that every number in its page is in the JSON that it drew."""

import json
import re
import unittest
from html.parser import HTMLParser
from pathlib import Path

from support.case import Case, some_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "bench" / "results").glob("*.json"))
TOKEN = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
THIN_SPACE = "\u202f"
SIGNIFICANT = 4
# Texts of the page itself, or of its axes, whose marks are computed.
OWN = {"style", "title"}
OWN_CLASSES = {"tick", "guide"}
EMPTY = {"meta", "link", "path", "line", "use", "rect", "circle", "br"}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent = tag, dict(attributes), parent
        self.children = []

    def classes(self):
        return set(self.attributes.get("class", "").split())

    def text(self):
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)

    def all(self):
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.all()

    def above(self, condition):
        element = self
        while element and not condition(element):
            element = element.parent
        return element


class Page(HTMLParser):
    """The tree of a page. A row ends where the next begins, as HTML allows."""

    ENDS = {"tr": {"td", "th", "tr"}, "td": {"td", "th"}, "th": {"td", "th"}, "tbody": {"td", "th", "tr", "thead"}, "li": {"li"}}

    def __init__(self, text):
        super().__init__()
        self.root = self.at = Element("", {}, None)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        while self.at.tag in self.ENDS.get(tag, ()):
            self.at = self.at.parent
        element = Element(tag, attributes, self.at)
        self.at.children.append(element)
        if tag not in EMPTY:
            self.at = element

    def handle_startendtag(self, tag, attributes):
        self.at.children.append(Element(tag, attributes, self.at))

    def handle_endtag(self, tag):
        if self.at.above(lambda element: element.tag == tag):
            self.at = self.at.above(lambda element: element.tag == tag).parent

    def handle_data(self, data):
        self.at.children.append(data)


def numbers_in(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_in(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def count_in(value, key, word):
    """How many members of that key say the word; true and false say met and missed."""
    if isinstance(value, list):
        return sum(count_in(inner, key, word) for inner in value)
    if not isinstance(value, dict):
        return 0
    own = value.get(key)
    said = {True: "met", False: "missed"}[own] if isinstance(own, bool) else own
    return sum(count_in(inner, key, word) for inner in value.values()) + (isinstance(said, str) and said == word)


def is_rounding(shown, full):
    """At least four digits of a number, or all of its integer part."""
    text = shown.replace(THIN_SPACE, "")
    value = float(text)
    digits = re.sub(r"^-?0*\.?0*|e.*", "", text).replace(".", "")
    step = 10.0 ** -len(text.split("e")[0].partition(".")[2]) * 10.0 ** int(text.partition("e")[2] or 0)
    return abs(value - full) <= step / 2 * 1.000001 or (len(digits) <= SIGNIFICANT and abs(value - full) <= abs(full) * 0.5e-3)


class Drawn(Case):
    """Each number is that of a file, as text or, rounded, with the whole of it in an attribute; or says how it was
    computed."""

    def page_of(self, *files):
        path = self.scratch.path / "page.html"
        outcome = self.warpline("report", *files, "--html", path)
        self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
        return Page(path.read_text(encoding="utf-8")).root

    def check(self, page, files):
        documents = {file.name: json.loads(file.read_text()) for file in files}
        known = {name: set(numbers_in(document)) for name, document in documents.items()}
        tokens = {file.name: set(TOKEN.findall(json.dumps(documents[file.name], ensure_ascii=False))) for file in files}
        tokens = {name: found | {f"{number:g}" for number in known[name]} for name, found in tokens.items()}
        everything = set().union(*known.values()), set().union(*tokens.values())
        verdicts = verdicts_of(page)
        checked = 0
        for element in page.all():
            if element.above(lambda e: e.tag in OWN or e.classes() & OWN_CLASSES):
                continue
            article = element.above(lambda e: "data-file" in e.attributes)
            name = article.attributes["data-file"] if article else None
            values, texts = (known[name], tokens[name]) if article else everything
            full = element.attributes.get("value" if element.tag == "data" else "data-value")
            if element.tag == "data" and "computed" in element.classes():
                self.check_ratio(element)
            elif element.tag == "data" and "counted" in element.classes():
                self.check_count(element, verdicts, documents.get(name))
            elif full is not None:
                self.assertIn(float(full), values, f"{full} is not in {name}")
                self.assertTrue(is_rounding(element.text(), float(full)), f"{element.text()} for {full}")
            else:
                for text in (child for child in element.children if isinstance(child, str)):
                    for token in TOKEN.findall(text.replace(THIN_SPACE, "")):
                        self.assertIn(token, texts, f"{token} in {text!r} is not in {name}")
                continue
            checked += 1
        return checked

    def check_ratio(self, element):
        row = element.above(lambda e: e.tag == "tr")
        cells = [child for child in row.children if isinstance(child, Element) and child.tag == "td"]
        value, base = (self.number_of(cell) for cell in (element.above(lambda e: e.tag == "td"), cells[int(element.attributes["data-to"])]))
        self.assertEqual(f"{value / base:.3f}", element.attributes["value"])
        self.assertEqual(element.text(), "×" + element.attributes["value"])

    @staticmethod
    def number_of(cell):
        data = next((e for e in cell.all() if e.tag == "data" and "computed" not in e.classes()), None)
        first = next((child for child in cell.children if isinstance(child, str)), "")
        return float(data.attributes["value"] if data else first)

    def check_count(self, element, verdicts, document):
        number = int(element.attributes["value"])
        self.assertEqual(element.text(), str(number))
        if "data-key" in element.attributes:
            self.assertEqual(number, count_in(document, element.attributes["data-key"], element.attributes["data-word"]))
            return
        state, article = element.attributes["data-state"], element.attributes.get("data-of")
        self.assertEqual(number, sum(count for of, states, count in verdicts if state in states and article in (None, of)))


def verdicts_of(page):
    """(article's identifier, classes of its badge, how many it counts for) of each item that says met or missed."""
    found = []
    for item in page.all():
        if item.tag != "li" or not (inside := item.above(lambda e: e.tag == "article")):
            continue
        inner = list(item.all())
        if badge := next((e for e in inner if "badge" in e.classes()), None):
            counted = next((e for e in inner if "counted" in e.classes()), None)
            found.append((inside.attributes["id"], badge.classes(), int(counted.attributes["value"]) if counted else 1))
    return found


class Numbers(Drawn):
    def test_of_all_kept_results(self):
        self.assertGreater(self.check(self.page_of(*RESULTS), RESULTS), 2000)

    def test_of_each_alone(self):
        for file in some_of(RESULTS):
            with self.subTest(file=file.name):
                self.check(self.page_of(file), [file])

    def test_of_a_run(self):
        run = self.warpline("forward", "--loopback", "--packets", 2000, "--json")
        self.report_of(run)
        file = self.scratch.path / "run.json"
        file.write_text(run.stdout, encoding="utf-8")
        page = self.page_of(file)
        self.check(page, [file])
        self.assertIn("warpline forward --config run.json --json", page.text())

    def test_a_number_that_is_not_in_the_json_is_found(self):
        file = RESULTS[0]
        page = self.page_of(file)
        data = next(e for e in page.all() if e.tag == "data" and not e.classes() and e.above(lambda a: a.tag == "article"))
        data.attributes["value"] = "123456.789"
        with self.assertRaises(AssertionError):
            self.check(page, [file])


class Kept(Case):
    def test_the_page_of_the_documents_is_that_of_the_results(self):
        """docs/report.html is what the program makes of bench/results/; setup/report makes it again."""
        page = self.scratch.path / "report.html"
        self.assertEqual(self.warpline("report", *RESULTS, "--html", page).code, 0)
        kept = (ROOT / "docs" / "report.html").read_bytes()
        self.assertTrue(kept == page.read_bytes(), "docs/report.html is not what bench/results/ gives: run setup/report")
        self.assertLess(len(kept), 5_000_000)


class Compared(Drawn):
    def write(self, name, date, median, cpu="A"):
        path = self.scratch.path / name
        path.write_text(json.dumps({
            "benchmark": "b", "command": "c", "date": date, "host": {"cpu": cpu, "cpus": 2},
            "rows": [{"name": "first", "rate_mpps": {"median": median, "ci95": [median - 1, median + 1]}}],
        }))
        return path

    def test_with_the_run_before_on_the_same_machine(self):
        files = [self.write("new.json", "2026-02-02", 30), self.write("old.json", "2026-01-01", 20), self.write("other.json", "2026-01-15", 99, "B")]
        page = self.page_of(*files)
        self.check(page, files)
        ratios = [e.text() for e in page.all() if "computed" in e.classes() and e.tag == "data"]
        self.assertEqual(ratios, ["×1.500"])


class Refused(Case):
    def refused(self, *arguments, fragments):
        self.assert_one_line_error(self.warpline("report", *arguments), 2, *fragments)

    def test_what_is_no_result(self):
        target = self.scratch.path / "page.html"
        for name, text, fragment in (
            ("words.json", "These are words.", "not JSON"),
            ("empty.json", "", "not JSON"),
            ("half.json", '{"benchmark": "b", ', "not JSON"),
            ("bytes.json", '{"benchmark": "\udcff"}', "not JSON"),
            ("other.json", '{"name": "left-pad", "version": "1.0.0"}', "no result of Warpline"),
            ("array.json", "[1, 2]", "no result of Warpline"),
            ("later.json", '{"schema_version": 2, "command": "forward"}', "'schema_version' is 2"),
            ("deep.json", '{"benchmark": "b", "a": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested deeper"),
        ):
            with self.subTest(name=name):
                path = self.scratch.path / name
                path.write_text(text, encoding="utf-8", errors="surrogateescape")
                self.refused(path, "--html", target, fragments=(name, fragment))
                self.assertFalse(target.exists())

    def test_what_is_not_there(self):
        self.refused("nowhere.json", "--html", "page.html", fragments=("nowhere.json", "No such file"))
        self.refused(self.scratch.path, "--html", "page.html", fragments=("folder",))

    def test_where_nothing_can_be_written(self):
        self.refused(RESULTS[0], "--html", self.scratch.path / "nowhere" / "page.html", fragments=("nowhere/page.html", "--html"))
        self.refused(RESULTS[0], "--html", self.scratch.path, fragments=("directory", "--html"))
        self.refused(RESULTS[0], "--html", "/dev/full", fragments=("/dev/full", "No space"))
        self.assertEqual(self.scratch.work_files(), set())

    def test_a_file_that_is_drawn_is_kept(self):
        file = self.scratch.path / "run.json"
        text = Path(RESULTS[0]).read_text(encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        (self.scratch.path / "link").symlink_to(file)
        for name in ("run.json", "./run.json", "link"):
            self.refused(RESULTS[0], file, "--html", name, fragments=(name, "one of the files to be drawn"))
        self.assertEqual(file.read_text(encoding="utf-8"), text)

    def test_what_is_not_said(self):
        self.refused("--html", "page.html", fragments=("FILES", "--html"))
        self.refused(RESULTS[0], fragments=("--html",))
        self.refused(RESULTS[0], "--htlm", "page.html", fragments=("--htlm", "--html"))


class Written(Case):
    def test_text_of_a_file_is_no_markup(self):
        file = self.scratch.path / "markup.json"
        text = "<script>alert(1)</script> & \"'\u0007"
        file.write_text(json.dumps({"benchmark": text, "command": text, text: text, "rows": [{"name": text, text: 1.5}, {"name": "b", text: 2}],
                                    "verdicts": [{"expected": text, "met": True}]}))
        page = self.scratch.path / "page.html"
        self.assertEqual(self.warpline("report", file, "--html", page).code, 0)
        html = page.read_text(encoding="utf-8")
        self.assertNotIn("<script", html)
        self.assertNotIn("\u0007", html)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;", html)

    def test_json_says_what_was_drawn(self):
        page = self.scratch.path / "page.html"
        outcome = self.warpline("report", RESULTS[0], RESULTS[0], "--html", page, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual((outcome.report["command"], outcome.report["bytes"]), ("report", page.stat().st_size))
        self.assertEqual(len({result["id"] for result in outcome.report["results"]}), 2)

    def test_a_page_takes_the_place_of_another(self):
        page = self.scratch.path / "page.html"
        page.write_text("old")
        self.assertEqual(self.warpline("report", RESULTS[0], f"--html={page}").code, 0)
        self.assertTrue(page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>"))
        self.assertEqual(self.scratch.work_files(), {"page.html"})

    def test_names_from_the_environment(self):
        outcome = self.warpline("report", env={"WARPLINE_REPORT_FILES": f"{RESULTS[0]}:{RESULTS[1]}", "WARPLINE_REPORT_HTML": "page.html"})
        self.assertEqual((outcome.code, outcome.stdout), (0, "page.html: 2 results\n"), outcome)


if __name__ == "__main__":
    unittest.main()
