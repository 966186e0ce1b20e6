# SPDX-License-Identifier: Apache-2.0
"""The manual's pages and what shells complete: made of the options' declarations, read by man and mandoc, and by the
shells themselves."""

import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support.program import BINARY

MAKER = os.environ.get("WARPLINE_MANUAL", "")
TIMEOUT = 60


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=TIMEOUT, **options)


class Made(unittest.TestCase):
    """With pages and completions in a folder."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="warpline-manual-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([MAKER, cls.folder, "1.2.3", "2026-01-02"], check=True)
        cls.pages = sorted((cls.folder / "man1").iterdir())


class Manual(Made):
    def test_every_command_has_a_page_with_all_options_of_its_help(self):
        self.assertGreater(len(self.pages), 12)
        for page in self.pages:
            words = page.stem.split("-")[1:]
            if not words:
                continue
            with self.subTest(page=page.name):
                text = page.read_text(encoding="utf-8").replace("\\-", "-")
                done = run(BINARY, *words, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                named = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", done.stdout, re.M))
                shown = set(re.findall(r"^(?:\\fB-\w\\fR, )?\\fB(--[\w-]+)\\fR", text, re.M))
                self.assertEqual(shown, named)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_mandoc_finds_nothing_wrong(self):
        for page in self.pages:
            done = run("mandoc", "-T", "lint", "-W", "warning", page)
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_man_shows_them(self):
        for page in self.pages:
            done = run("man", "--warnings", "-E", "UTF-8", "-l", page, env={**os.environ, "MANWIDTH": "80", "MANROFFSEQ": ""})
            if "has been minimized" in done.stdout:
                self.skipTest("this machine has a man that shows nothing")
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertIn("EXIT STATUS", done.stdout)
            self.assertIn("1.2.3", done.stdout)


# What is typed, and what comes of it.
COMPLETED = (
    ("warpline for", {"forward"}),
    ("warpline message s", {"server"}),
    ("warpline message k", {"key"}),
    ("warpline config ch", {"check"}),
    ("warpline bench ada", {"adaptive"}),
    ("warpline forward --eng", {"--engine"}),
    ("warpline forward --engine ", {"inline", "thread", "launch", "graph", "persistent"}),
    ("warpline forward -m p", {"pinned"}),
    ("warpline message client --bid", {"--bidir"}),
    ("warpline message server --bid", set()),
    ("warpline stream send --congestion cu", {"cubic"}),
    ("warpline doctor --j", {"--json"}),
)


class Completion(Made):
    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash(self):
        for line, expected in COMPLETED:
            words = line.split(" ")
            script = f'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD={len(words) - 1}; _warpline; printf "%s\\n" "${{COMPREPLY[@]}}"'
            done = run("bash", "--norc", "-c", script, "bash", self.folder / "bash" / "warpline", *words)
            self.assertEqual((done.returncode, done.stderr, set(done.stdout.split())), (0, "", expected), line)

    def test_bash_names_files(self):
        (self.folder / "here").mkdir()
        (self.folder / "here" / "routes.txt").touch()
        script = 'source "$1"; COMP_WORDS=(warpline l3forward --routes ro); COMP_CWORD=3; _warpline; printf "%s" "${COMPREPLY[*]}"'
        done = run("bash", "--norc", "-c", script, "bash", self.folder / "bash" / "warpline", cwd=self.folder / "here")
        self.assertEqual((done.stdout, done.stderr), ("routes.txt", ""))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        for line, expected in COMPLETED:
            done = run("fish", "--no-config", "-c", f"source {self.folder}/fish/warpline.fish; complete -C '{line}'",
                       env={**os.environ, "HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)})
            found = {row.split("\t")[0] for row in done.stdout.splitlines()}
            self.assertEqual((done.returncode, done.stderr, found), (0, "", expected), line)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        """At a terminal, by the tabulator: what is completed stands in the line that Enter then shows."""
        for line, expected in COMPLETED:
            if len(expected) != 1:
                continue
            self.assertIn(line.rsplit(" ", 1)[0] + " " + expected.pop(), self.typed_in_zsh(line), line)

    def typed_in_zsh(self, line):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ.update(TERM="dumb", PS1="", ZDOTDIR=str(self.folder), LC_ALL="C.UTF-8")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        seen = ""

        def until(pattern):
            nonlocal seen
            while not re.search(pattern, seen):
                self.assertTrue(select.select([terminal], [], [], TIMEOUT)[0], seen)
                seen += os.read(terminal, 4096).decode(errors="replace")

        def say(text):
            os.write(terminal, text.encode())

        try:
            say(f"PS1=; unsetopt zle_bracketed_paste; fpath=({self.folder}/zsh $fpath); autoload -U compinit; compinit -u -D; "
                "show() { print -r -- \"[$BUFFER]\"; BUFFER=; zle accept-line }; zle -N show; bindkey '^X' show; print rea''dy\n")
            until("ready")
            seen = ""
            say(line + "\t\x18")
            until(r"\[warpline[^\]]*\]")
            return re.search(r"\[(warpline[^\]]*)\]", seen)[1]
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    unittest.main()
