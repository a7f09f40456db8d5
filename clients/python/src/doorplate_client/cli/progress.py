"""One line that says how far a run is: rewritten on a terminal, every ten seconds elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from typing import Callable, TextIO

from ..lookup_many import LookupProgress
from .text import duration, without_controls

TERMINAL_SECONDS = 0.2
FILE_SECONDS = 10.0
# The rate is that of the last minute.
WINDOW_SECONDS = 60.0
BAR = 24


class ProgressLine:
    """Shows the progress from its own thread, from the beginning of a ``with`` block to its end.

    read: the progress at a moment. clock: seconds; replaced in tests.
    """

    def __init__(
        self, read: Callable[[], LookupProgress], out: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._out = out
        self._clock = clock
        self._is_terminal = out.isatty()
        self._samples: deque[tuple[float, int]] = deque([(clock(), read().done)])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show_until_end, daemon=True)

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Show the last state and end the line."""
        self._ended.set()
        self._thread.join()
        self._show()
        if self._is_terminal:
            self._out.write("\n")

    def _show_until_end(self) -> None:
        while not self._ended.wait(TERMINAL_SECONDS if self._is_terminal else FILE_SECONDS):
            self._show()

    def _show(self) -> None:
        progress = self._read()
        self._samples.append((self._clock(), progress.done))
        while self._samples[-1][0] - self._samples[0][0] > WINDOW_SECONDS:
            self._samples.popleft()
        (first_at, first_done), (last_at, last_done) = self._samples[0], self._samples[-1]
        rate = (last_done - first_done) / (last_at - first_at) if last_at > first_at else 0.0
        text = progress_text(progress, rate)
        self._out.write(f"\r\x1b[2K{text}" if self._is_terminal else f"{text}\n")
        self._out.flush()


def progress_text(progress: LookupProgress, rate: float) -> str:
    """Return one line of progress. rate: addresses a second."""
    total, done, waiting = progress.total, progress.done, progress.waiting
    share = 1.0 if total == 0 else done / total
    bar = ("#" * math.floor(share * BAR)).ljust(BAR, "-")
    left = f", {duration((total - done) / rate)} left" if done < total and rate > 0 else ""
    why = (
        f"; the service takes new addresses again in {math.ceil(waiting.seconds)} s ({without_controls(waiting.code)})"
        if waiting
        else ""
    )
    return (
        f"[{bar}] {done} of {total} ({math.floor(share * 100)} %), {progress.pending} pending, {rate:.1f}/s{left}{why}"
    )
