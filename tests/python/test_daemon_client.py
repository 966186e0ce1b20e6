# SPDX-License-Identifier: Apache-2.0
"""warpline.daemon: what reaches the client library, which ctypes would cut, is whole or refused."""

import array
import unittest
from unittest import mock

from warpline import daemon


class Arguments(unittest.TestCase):
    def setUp(self):
        self.calls = []
        patched = mock.patch.object(daemon, "_call", side_effect=lambda *arguments: self.calls.append(arguments) or 1)
        patched.start()
        self.addCleanup(patched.stop)
        self.client = daemon.Client.__new__(daemon.Client)  # attached to nothing
        self.client._handle = object()
        self.addCleanup(setattr, self.client, "_handle", None)

    def sent(self):
        """The bytes and the length of the last message."""
        arguments = self.calls[-1]
        at = next(i for i, argument in enumerate(arguments) if type(argument) is bytes)
        return arguments[at], arguments[at + 1]

    def test_messages_are_all_bytes_of_their_arrays(self):
        numbers = array.array("h", [300, 5, -1])
        for data in (
            b"bytes", bytearray(b"more"), numbers, array.array("d", [1.5, -2.0]), memoryview(b"abcdef")[::2],
            memoryview(b"abcdef").cast("B", (2, 3)), b"",
        ):
            whole = data if isinstance(data, bytes) else memoryview(data).tobytes()
            for ask in (
                lambda data: self.client.request(1, 7, data), lambda data: self.client.send(1, 7, data), lambda data: self.client.answer(3, data),
            ):
                ask(data)
                self.assertEqual((whole, len(whole)), self.sent())

    def test_what_has_no_bytes_is_refused(self):
        for data in ("text", 5, None, [300, 5], object()):
            for ask in (
                lambda data: self.client.request(1, 7, data), lambda data: self.client.send(1, 7, data), lambda data: self.client.answer(3, data),
            ):
                with self.assertRaises(TypeError):
                    ask(data)
        self.assertEqual([], self.calls)

    def test_numbers_are_not_cut(self):
        for ask in (
            lambda: self.client.request(1, 1 << 16, b""), lambda: self.client.request(1 << 32, 1, b""), lambda: self.client.request(1, 1, b"", tag=1 << 64),
            lambda: self.client.send(1, -1, b""), lambda: self.client.answer(1 << 64, b""), lambda: self.client.answer(1, b"", code=70_000),
            lambda: self.client.listen(1 << 16), lambda: self.client.listen(1, 1 << 32), lambda: self.client.cancel(-1), lambda: self.client.decline(1 << 64),
            lambda: self.client.close_session(-1), lambda: self.client.connect("192.0.2.1:1", tag=-1),
        ):
            with self.assertRaises(ValueError):
                ask()
        self.assertEqual([], self.calls)

    def test_long_times_stay_long(self):
        longest = 2**63 - 1
        for seconds, nanoseconds in ((1e-12, 1), (0.5, 500_000_000), (1e10, longest), (1e300, longest), (float("inf"), longest)):
            self.client.request(1, 7, b"", seconds)
            self.assertEqual(nanoseconds, self.calls[-1][6])
        self.client.wait(1e12)
        self.assertEqual(longest, self.calls[-1][2])


if __name__ == "__main__":
    unittest.main()
