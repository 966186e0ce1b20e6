# SPDX-License-Identifier: Apache-2.0
"""An event loop beside the threads of an actor."""

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class LoopThread:
    """An asyncio loop on a thread of its own, until the process ends; `at_end` is awaited before. Any thread may use it."""

    def __init__(self, name: str, at_end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._at_end = at_end
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def begin(self, work: Coroutine[Any, Any, _Result]) -> "concurrent.futures.Future[_Result]":
        """Has the loop do it. Cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _end(self) -> None:
        try:
            self.begin(self._at_end()).result(timeout=2)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=2)
