# SPDX-License-Identifier: Apache-2.0
"""The dissector for Wireshark beside the program's own parsers, in tshark, on frames that the program's code wrote."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from support import pcap
from support.frames import ethernet, ip, mac, udp
from support.program import IS_ROOT, NOBODY

DISSECTOR = pathlib.Path(__file__).resolve().parents[2] / "share" / "wireshark" / "warpline_message.lua"
GENERATOR = os.environ["WARPLINE_MESSAGE_PCAP"]
DECODE_AS = ("-d", "udp.port==4433,warpline")
COLUMNS = ("frame.protocols", "warpline.parse", "_ws.col.Info", "_ws.lua.error", "warpline.malformed")


@unittest.skipUnless(shutil.which("tshark"), "tshark is not installed: apt-get install tshark")
class Dissector(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # Wireshark from 4.4 on runs no scripts for root. Who does it instead may not be able to look into the checkout.
        self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
        self.folder.chmod(0o755)
        self.dissector = shutil.copy(DISSECTOR, self.folder)

    def capture(self, which):
        """Writes a capture; returns its path and [(verdict, description)] of its frames."""
        path = self.folder / f"{which}.pcap"
        lines = subprocess.run([GENERATOR, path, which], check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertGreater(len(lines), 50)
        return path, [tuple(line.split("\t")) for line in lines]

    def tshark(self, path, *arguments):
        # A home of its own: no preferences, no other plugins.
        done = subprocess.run(["tshark", "-r", path, "-X", f"lua_script:{self.dissector}", *arguments], capture_output=True, text=True,
                              cwd=self.folder, env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
                              check=False, **self.user)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("Lua", "lua"):
            self.assertNotIn(word, done.stderr)
        return done.stdout.splitlines()

    def rows(self, path, *arguments, columns=COLUMNS):
        fields = [argument for column in columns for argument in ("-e", column)]
        # Wireshark from 4.4 on says in words what is true, and said it in numbers before.
        truth = {"True": "1", "False": "0"}
        lines = self.tshark(path, "-T", "fields", *fields, *arguments)
        return [dict(zip(columns, (truth.get(value, value) for value in line.split("\t")))) for line in lines]

    def test_says_what_the_program_says(self):
        for which in ("well-formed", "damaged"):
            path, expected = self.capture(which)
            rows = self.rows(path, *DECODE_AS)
            self.assertEqual(len(rows), len(expected))
            for number, (row, (verdict, description)) in enumerate(zip(rows, expected), 1):
                told = verdict in ("malformed", "truncated") and "not of" not in description
                wanted = dict(zip(COLUMNS, (row["frame.protocols"], verdict, description, "", "1" if told else "")))
                self.assertEqual({**row, "warpline.malformed": row["warpline.malformed"] and "1"}, wanted, f"{which}, frame {number}")
            if which == "well-formed":
                self.assertEqual({verdict for verdict, _ in expected}, {"ok"})
            else:
                self.assertEqual({verdict for verdict, _ in expected}, {"ok", "truncated", "not_ours", "version", "type", "malformed"})

    def test_finds_sessions_on_any_port(self):
        path, expected = self.capture("well-formed")
        rows = self.rows(path)
        self.assertEqual([row["warpline.parse"] for row in rows], ["ok"] * len(expected))

    def test_leaves_other_traffic_alone(self):
        """Text that begins with our first byte, our prefix without the rest, a version to come."""
        payloads = (b"W", b"Warpline speaking\n", b"\x57\x24\x02\x00", b"\x57\x20" + bytes(70), b"\x57\x34" + bytes(26), bytes(28))
        ends = ("192.0.2.1", "192.0.2.2")
        macs = (mac("02:00:00:00:00:01"), mac("02:00:00:00:00:02"))
        datagrams = [ip(*ends, 17, udp(*ends, 40000, 4433, payload)) for payload in payloads]
        path = pcap.write(self.folder / "other.pcap", [ethernet(*macs, 0x0800, datagram) for datagram in datagrams])
        for row in self.rows(path):
            self.assertEqual((row["frame.protocols"], row["warpline.parse"]), ("eth:ethertype:ip:udp:data", ""))

    def test_fields(self):
        path, _ = self.capture("well-formed")
        columns = ("warpline.type", "warpline.session", "warpline.nonce", "warpline.terms.datagram_bytes", "warpline.terms.ordered",
                   "warpline.terms.grants", "warpline.room", "warpline.cookie", "warpline.reason", "warpline.packet_number", "warpline.fragment.kind",
                   "warpline.fragment.total", "warpline.ack.word", "warpline.payload_length", "warpline.tag")
        rows = self.rows(path, *DECODE_AS, columns=columns)
        self.assertEqual(rows[0], {**dict.fromkeys(columns, ""), "warpline.type": "0", "warpline.session": "0x01020304",
                                   "warpline.nonce": "0x1122334455667788", "warpline.terms.datagram_bytes": "1472",
                                   "warpline.terms.ordered": "0", "warpline.terms.grants": "0", "warpline.room": "1048576"})
        self.assertEqual((rows[1]["warpline.terms.ordered"], rows[1]["warpline.terms.grants"]), ("1", "1"))
        self.assertEqual([row["warpline.reason"] for row in rows[6:10]], ["1", "2", "3", "4"])
        full = rows[10 + 0x3F]  # all flags
        self.assertEqual(full["warpline.packet_number"], str(0x123456789A))
        self.assertEqual((full["warpline.fragment.kind"], full["warpline.fragment.total"], full["warpline.payload_length"]), ("1", "32", "32"))
        self.assertEqual(len(full["warpline.ack.word"].split(",")), 3)
        self.assertEqual(len(full["warpline.tag"].replace(":", "")), 32)
        self.assertEqual({row["warpline.fragment.kind"] for row in rows}, {"", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "1,2,3,5", "1,1,2,3,5"})

    def test_checks_of_the_path(self):
        path, _ = self.capture("well-formed")
        columns = ("warpline.path.kind", "warpline.path.time", "warpline.path.token", "_ws.col.Info")
        rows = self.rows(path, *DECODE_AS, "-Y", "warpline.path.kind", columns=columns)
        self.assertEqual([tuple(row.values())[:3] for row in rows], [(kind, "9", "0x7766554433221100") for kind in "12"])
        self.assertEqual([row["_ws.col.Info"].split(" path ")[1] for row in rows], ["challenge", "response"])

    def test_heads_of_streams(self):
        path, _ = self.capture("well-formed")
        columns = ("warpline.fragment.kind", "warpline.stream.kind", "warpline.stream.to", "warpline.stream.from", "warpline.stream.number", "warpline.stream.credit")
        rows = self.rows(path, *DECODE_AS, "-Y", "warpline.fragment.stream == 1", columns=columns)
        values = ("2", "0x00001001", "0x00002002", "77", "65536")
        self.assertEqual([tuple(row.values()) for row in rows], [(kind, *values) for kind in "123" for _ in range(3)])

    def test_what_goes_before_others_says_so(self):
        path, _ = self.capture("well-formed")
        rows = self.rows(path, *DECODE_AS, "-Y", "warpline.fragment.high == 1", columns=("warpline.fragment.kind",))
        self.assertEqual([row["warpline.fragment.kind"] for row in rows], ["1", "2", "3"])

    def test_the_tree_shows_every_byte_of_a_handshake(self):
        path, _ = self.capture("well-formed")
        text = "\n".join(self.tshark(path, *DECODE_AS, "-V", "-Y", "warpline.type == 2"))
        for line in ("Type: accept (2)", "Most UDP payload that it takes: 1472", "Acknowledgements wait at most, ns: 25000"):
            self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main()
