# SPDX-License-Identifier: Apache-2.0
"""Where values come from, and what becomes of names that nobody knows."""

import json
import unittest

from support.case import Case


class Precedence(Case):
    def effective(self, *arguments, **options):
        outcome = self.warpline("config", "show", "forward", "--json", *arguments, **options)
        self.assertEqual(outcome.code, 0, outcome)
        return outcome.report["config"]

    def write_file(self, text, name="settings.toml"):
        path = self.scratch.path / name
        path.write_text(text, encoding="utf-8")
        return path

    def origin_and_value(self, *arguments, **options):
        outcome = self.warpline("config", "show", "forward", *arguments, **options)
        self.assertEqual(outcome.code, 0, outcome)
        line = next(line for line in outcome.stdout.splitlines() if "forward.burst" in line)
        return line

    def test_flag_before_environment_before_file_before_default(self):
        file = self.write_file("[forward]\nburst = 16\n")
        environment = {"WARPLINE_FORWARD_BURST": "48"}
        for arguments, env, value, origin in (
            ((), {}, 64, "default"),
            (("--config", file), {}, 16, "settings.toml:2"),
            (("--config", file), environment, 48, "WARPLINE_FORWARD_BURST"),
            (("--config", file, "--burst", 96), environment, 96, "flag"),
            (("--config", file, "--burst", "adaptive"), environment, "adaptive", "flag"),
            (("--config", file), {"WARPLINE_FORWARD_BURST": "adaptive"}, "adaptive", "WARPLINE_FORWARD_BURST"),
            (("--config", self.write_file('[forward]\nburst = "adaptive"\n', "adaptive.toml")), {}, "adaptive", "adaptive.toml:2"),
        ):
            with self.subTest(value=value):
                line = self.origin_and_value(*arguments, env=env)
                self.assertIn(str(value), line)
                self.assertIn(origin, line)
                self.assertEqual(self.effective(*arguments, env=env)["forward"]["burst"], value)

    def test_what_show_prints_configures_the_same_again(self):
        path = self.scratch.path / "again.json"
        for burst in (("--burst", 7, "--deadline", "5us"), ("--burst", "adaptive")):
            first = self.effective("--port", "net_null0", *burst, "--workload", "checksum")
            for shape in (first, {"schema_version": 1, "config": first}):
                path.write_text(json.dumps(shape), encoding="utf-8")
                self.assertEqual(self.effective("--config", path), first)

    def test_the_environment_configures_a_run(self):
        outcome = self.warpline(
            "forward",
            env={
                "WARPLINE_FORWARD_LOOPBACK": "true",
                "WARPLINE_FORWARD_PACKETS": "1000",
                "WARPLINE_FORWARD_JSON": "1",
                "WARPLINE_FORWARD_BURST": "8",
            },
        )
        self.assertEqual(self.report_of(outcome)["config"]["forward"]["burst"], 8)

    def test_units(self):
        shown = self.effective("--packets", "2K", "--deadline", "1.5ms")
        self.assertEqual(shown["run"]["packets"], 2000)


class UnknownNames(Case):
    def test_nearest_name(self):
        file = self.scratch.path / "wrong.toml"
        for arguments, env, text, wrong, nearest in (
            (("forwrad",), {}, None, "forwrad", "forward"),
            (("forward", "--brust", 64), {}, None, "--brust", "--burst"),
            (("forward", "--loopbck"), {}, None, "--loopbck", "--loopback"),
            (("forward", "--workload", "mac-swp"), {}, None, "mac-swp", "mac-swap"),
            (("forward", "--engine", "inlne"), {}, None, "inlne", "inline"),
            (("config", "shwo"), {}, None, "shwo", "show"),
            (("forward",), {"WARPLINE_FORWARD_BRUST": "3"}, None, "WARPLINE_FORWARD_BRUST", "WARPLINE_FORWARD_BURST"),
            (("forward", "--config", file), {}, "[forward]\nbrust = 3\n", "brust", "burst"),
            (("forward", "--config", file), {}, "[forwrd]\nburst = 3\n", "forwrd", "forward"),
        ):
            with self.subTest(wrong=wrong):
                if text:
                    file.write_text(text, encoding="utf-8")
                outcome = self.warpline(*arguments, env=env)
                self.assert_one_line_error(outcome, 2, wrong, nearest)

    def test_a_file_error_names_its_line(self):
        file = self.scratch.path / "wrong.toml"
        for text, line in (
            ("[forward]\n\nbrust = 3\n", 3),
            ("[forward]\nburst = = 3\n", 2),
            ('[forward]\nburst = "x"\n', 2),
        ):
            with self.subTest(text=text):
                file.write_text(text, encoding="utf-8")
                self.assert_one_line_error(self.warpline("forward", "--config", file), 2, f"wrong.toml:{line}")


class WrongValues(Case):
    def test_each_is_quoted(self):
        for option, value in (
            ("--burst", "0"),
            ("--burst", "-1"),
            ("--burst", "many"),
            ("--burst", "99999"),
            ("--burst", ""),
            ("--deadline", "5 parsecs"),
            ("--pipelines", "0"),
            ("--warmup", "1.5"),
            ("--warmup", "18446744073709551616"),
            ("--seconds", "-1"),
            ("--lcores", "all"),
            ("--packet-time", "1x"),
            ("--interval", "0"),
            ("--address", "10.0.0.300/24"),
            ("--size", "59"),
            ("--size", "9015"),
            ("--port", ""),
        ):
            with self.subTest(option=option, value=value):
                outcome = self.warpline("forward", "--loopback", "--packets", 10, option, value)
                self.assert_one_line_error(outcome, 2, option, f"'{value}'" if value else option)

    def test_no_command(self):
        self.assert_one_line_error(self.warpline(), 2)

    def test_a_value_is_missing(self):
        self.assert_one_line_error(self.warpline("forward", "--burst"), 2, "--burst")

    def test_a_file_that_is_not_there(self):
        self.assert_one_line_error(self.warpline("forward", "--config", "nowhere.toml"), 2, "nowhere.toml")


class LogLevels(Case):
    def lines_of_eal(self, *arguments):
        run = ("forward", "--loopback", "--packets", 100, "--no-hugepages", "--share-cores", "--lcores", 1)
        outcome = self.warpline(*run, *arguments)
        self.assertEqual(outcome.code, 0, outcome)
        return sum(line.startswith("EAL: ") for line in outcome.stderr.splitlines())

    def test_each_says_more_than_the_one_before(self):
        error, info, debug = (self.lines_of_eal("--log-level", level) for level in ("error", "info", "debug"))
        self.assertEqual(error, 0)
        self.assertLess(error, info)
        self.assertLess(info, debug)

    def test_what_eal_is_told_of_a_component_wins(self):
        of_component = ("--eal", "--log-level=lib.eal,debug")
        info = self.lines_of_eal("--log-level", "info")
        for arguments in (of_component, ("--log-level", "critical", *of_component)):
            with self.subTest(arguments=arguments):
                self.assertGreater(self.lines_of_eal(*arguments), info)


class Help(Case):
    def test_help_is_data(self):
        for arguments in (
            ("--help",),
            ("forward", "--help"),
            ("generate", "--help"),
            ("config", "--help"),
            ("doctor", "--help"),
        ):
            with self.subTest(arguments=arguments):
                outcome = self.warpline(*arguments)
                self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
                self.assertIn("warpline", outcome.stdout)

    def test_version(self):
        outcome = self.warpline("--version")
        self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
        self.assertRegex(outcome.stdout, r"^warpline \d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
