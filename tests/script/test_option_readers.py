# SPDX-License-Identifier: Apache-2.0
"""An option that several commands take is read by each of them, and refused by all others.

Options are declared once for a list of commands, so one can be accepted by a command that has no use for it. Here each pair has a row that names the code
that reads the value: a command in a list without that code fails."""

import re
import unittest
from pathlib import Path

from support.case import Case

ROOT = Path(__file__).resolve().parents[2]
MOVERS = ("forward", "l3forward", "ingest", "generate")
PATHS = ("forward", "l3forward", "ingest")
MESSAGE = ("message server", "message client")
RECEIVE = ("stream receive", "stream proxy")
STREAM = (*RECEIVE, "stream send")
ALL = (*MOVERS, *MESSAGE, *STREAM)

APPS = "apps/warpline/"
SRC = "src/warpline/"
FRAME = APPS + "frame/"

# Options, the commands that read them, where, and how.
READERS = (
    ("config", ALL, APPS + "config/load.cc", r'"config"'),
    ("port", PATHS, FRAME + "forward_frame.cc", r"config_\.ports"),
    ("port", ("generate",), APPS + "generate.cc", r"config_\.ports"),
    ("port", MESSAGE, APPS + "message_layout.cc", r"config_\.ports"),
    ("port", RECEIVE, APPS + "stream.cc", r"config_\.ports"),
    ("port", ("stream send",), APPS + "stream_send.cc", r"config_\.ports"),
    ("rx-ring tx-ring", ALL, SRC + "port/port_setup.cc", r"settings\.{0}"),
    ("rx-free-thresh tx-free-thresh tx-rs-thresh", ALL, SRC + "port/port_queues.cc", r"settings_\.{0}"),
    ("rx-offloads tx-offloads mtu", ALL, SRC + "port/port_setup.cc", r"settings\.{0}"),
    ("rss-key rss-fields", ALL, SRC + "port/port_setup.cc", r"settings_\.{0}"),
    ("promiscuous", ALL, SRC + "port/port.cc", r"settings_\.{0}"),
    ("address", ("forward", "ingest"), SRC + "forward/forwarder.cc", r"responder\.emplace"),
    ("address", ("l3forward",), APPS + "l3forward.cc", r"addresses"),
    ("address", ("generate",), APPS + "generate.cc", r"responder\.emplace"),
    ("address", MESSAGE, APPS + "message_layout.cc", r"addresses"),
    ("address", RECEIVE, APPS + "stream.cc", r"addresses"),
    ("address", ("stream send",), SRC + "stream_port/send_port.cc", r"addresses"),
    ("packets warmup", ("forward", "ingest"), FRAME + "forward_frame.cc", r"run\.{0}"),
    ("packets", ("l3forward",), APPS + "l3forward.cc", r"run\.{0}"),
    ("warmup", ("l3forward",), SRC + "report/live.cc", r"settings\.{0}"),
    ("packets warmup", ("generate",), APPS + "generate.cc", r"run\.{0}"),
    ("seconds interval json-stream", MOVERS, SRC + "report/live.cc", r"\.{0}"),
    ("seconds", MESSAGE, APPS + "message.cc", r"seconds"),
    ("seconds", RECEIVE, APPS + "stream.cc", r"seconds"),
    ("seconds", ("stream send",), APPS + "stream_send.cc", r"seconds"),
    ("interval json-stream", (*MESSAGE, *STREAM), FRAME + "interval_loop.h", r"settings\.{0}"),
    ("json", (*MOVERS, *MESSAGE, *STREAM), SRC + "report/run_end.h", r"settings\.{0}"),
    ("seed", ("forward", "ingest"), FRAME + "forward_frame.cc", r"run\.{0}"),
    ("seed", ("generate",), APPS + "generate.cc", r"run\.{0}"),
    ("seed", ("message client",), APPS + "message.cc", r"run\.{0}"),
    ("seed", ("stream receive",), APPS + "stream.cc", r"run\.{0}"),
    ("seed", ("stream send",), APPS + "stream_send.cc", r"run\.{0}"),
    ("verify", ("forward",), APPS + "forward.cc", r"run\.{0}"),
    ("verify", ("ingest",), APPS + "ingest.cc", r"run\.{0}"),
    ("verify", ("generate",), APPS + "generate.cc", r"run\.{0}"),
    ("verify", ("message client",), APPS + "message_layout.cc", r"run\.{0}"),
    ("verify", ("stream receive",), APPS + "stream.cc", r"run\.{0}"),
    ("lcores share-cores", ALL, SRC + "runtime/lcore_plan.cc", r"settings\.{0}"),
    ("no-hugepages", ALL, SRC + "runtime/eal.cc", r"hugepages"),
    ("eal", ALL, SRC + "runtime/eal.cc", r"settings\.{0}"),
    ("log-level", ALL, SRC + "runtime/eal.cc", r"log_level"),
    ("telemetry", ALL, SRC + "runtime/eal.cc", r"{0}"),
    ("crash-report keep-privileges", ALL, FRAME + "run_*.cc", r"{0}"),
    ("data-room pool-size pool-cache", PATHS, SRC + "forward/forward_ports.cc", r"pool\.{0}"),
    ("data-room pool-size pool-cache", ("generate",), APPS + "generate.cc", r"pool\.{0}"),
    ("data-room pool-size pool-cache", MESSAGE, SRC + "transport/ethdev/*.cc", r"pool\.{0}"),
    ("data-room pool-size pool-cache", RECEIVE, SRC + "stream_port/pooled_port.cc", r"pool\.{0}"),
    ("data-room pool-size pool-cache", ("stream send",), SRC + "stream_port/pooled_port.cc", r"pool\.{0}"),
    ("memory", ("forward",), SRC + "forward/*.cc", r"pool\.{0}"),
    ("memory", ("ingest",), APPS + "ingest.cc", r"ingest\.{0}"),
    ("memory", MESSAGE, APPS + "message_layout.cc", r"pool\.{0}"),
    ("pool", ("forward", "ingest"), SRC + "forward/forward_ports.cc", r"pool\.sharing"),
    ("pipelines", PATHS, SRC + "datapath/layout.cc", r"{0}"),
    ("pipelines", RECEIVE, APPS + "stream.cc", r"stream\.{0}"),
    ("pipelines", ("stream send",), APPS + "stream_send.cc", r"stream\.{0}"),
    ("burst", ("forward",), SRC + "forward/forwarder.cc", r"forward\.{0}"),
    ("burst", ("l3forward",), SRC + "router/router.cc", r"forward\.{0}"),
    ("burst", ("generate",), APPS + "generate.cc", r"traffic\.{0}"),
    ("deadline", ("forward", "ingest"), SRC + "forward/forwarder.cc", r"forward\.{0}"),
    ("deadline", ("l3forward",), SRC + "router/router.cc", r"forward\.{0}"),
    ("tx-retries", ("forward", "ingest"), SRC + "forward/forwarder.cc", r"forward\.{0}"),
    ("tx-retries", ("l3forward",), SRC + "router/router.cc", r"forward\.{0}"),
    ("recycle", ("forward",), SRC + "forward/forward_ports.cc", r"forward\.{0}"),
    ("recycle", ("l3forward",), APPS + "l3forward.cc", r"{0}"),
    ("engine ctas", ("forward",), SRC + "forward/*.cc", r"forward\.{0}"),
    ("io", ("forward",), SRC + "forward/forwarder.cc", r"forward\.{0}"),
    ("engine", ("ingest",), APPS + "ingest.cc", r"ingest\.{0}"),
    ("ctas", ("ingest",), APPS + "ingest.cc", r"forward\.{0}"),
    ("ring-slots gpu watchdog", ("forward",), SRC + "forward/*", r"{0}"),
    ("ring-slots", ("ingest",), SRC + "ingest/ingest_stages.cc", r"forward\.{0}"),
    ("gpu watchdog", ("ingest",), SRC + "forward/*", r"{0}"),
    ("nvtx loopback", ("forward", "ingest"), FRAME + "forward_frame.cc", r"forward\.{0}"),
    ("persona", ("forward", "ingest"), SRC + "forward/forward_ports.cc", r"forward\.{0}"),
    ("size flows src-mac dst-mac src-ip dst-ip src-port dst-port", ("forward", "ingest", "generate"), SRC + "traffic/traffic.cc", r"{0}"),
    ("rate drain", ("forward", "ingest"), FRAME + "forward_frame.cc", r"traffic\.{0}"),
    ("rate drain", ("generate",), APPS + "generate.cc", r"traffic\.{0}"),
    ("metrics metrics-allow", ALL, FRAME + "run_frame.cc", r"metrics"),
    ("capture capture-what capture-filter capture-snaplen capture-limit", ("forward", "l3forward"), FRAME + "forward_frame.cc", r"config_\.capture"),
)

# Fields that are not called as their option is.
FIELDS = {"pool-size": "size", "pool-cache": "cache", "no-hugepages": "hugepages"}
# Options that one command has in several roles, or that another issue's code of `message` and `stream` reads by itself.
OF_ONE_COMMAND = {"message", "stream"}


def field(option):
    return FIELDS.get(option, option.replace("-", "_"))


class OptionReaders(Case):
    def options_of(self, command):
        outcome = self.warpline(*command.split(), "--help")
        self.assertEqual(outcome.code, 0, outcome)
        return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", outcome.stdout, re.MULTILINE)) - {"help"}

    def setUp(self):
        super().setUp()
        self.options = {command: self.options_of(command) for command in ALL}

    def is_shared(self, option):
        return len({command.split()[0] for command in ALL if option in self.options[command]}) > 1

    def test_each_option_is_read_by_each_command_that_takes_it(self):
        rows = {}
        for options, commands, files, pattern in READERS:
            for option in options.split():
                text = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(files)))
                self.assertRegex(text, pattern.format(field(option)), f"{files} reads --{option}")
                for command in commands:
                    self.assertIn(option, self.options[command], f"{command} has a row and no such option")
                    rows.setdefault(command, set()).add(option)
        for command in ALL:
            shared = {option for option in self.options[command] if self.is_shared(option)}
            of_its_own = command.split()[0] in OF_ONE_COMMAND
            missing = shared - rows[command]
            if of_its_own:
                missing = {option for option in missing if any(option in self.options[mover] for mover in MOVERS)} - OWN_OF_PROTOCOLS
            self.assertEqual(missing, set(), f"{command} takes these, and no row says what reads them")

    def test_other_commands_refuse_it(self):
        """By the name: `config check` reads a command line as the command does, without a port."""
        every = set().union(*self.options.values())
        for command in MOVERS:
            for option in sorted(every - self.options[command]):
                with self.subTest(command=command, option=option):
                    self.assert_one_line_error(self.warpline(command, f"--{option}=1"), 2, f"--{option}")


# `message` and `stream` declare these for themselves: other fields, of other code.
OWN_OF_PROTOCOLS = {"memory", "gpu", "engine", "watchdog", "rate", "verify", "size", "io"}


if __name__ == "__main__":
    unittest.main()
