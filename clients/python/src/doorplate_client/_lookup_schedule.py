"""When which of many addresses is asked about next, and the pauses that the service asks for."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Callable, Literal

Asks = Literal["submit", "poll"]


@dataclass(frozen=True)
class Task:
    """One address, and how it is asked about next. failures: attempts in a row whose outcome is unknown."""

    ip: str
    asks: Asks = "submit"
    failures: int = 0


class LookupSchedule:
    """Tasks of one thread; other threads may read ``total``, ``pending`` and ``waiting``.

    clock: monotonic seconds. Submissions, which make new work, can be paused apart from polls.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.total = 0
        self._clock = clock
        # New addresses, in the order of their arrival.
        self._fresh: deque[Task] = deque()
        # Heaps of (time, number, task): the number keeps the order of tasks of the same time.
        self._due: dict[Asks, list[tuple[float, int, Task]]] = {"submit": [], "poll": []}
        self._numbers = itertools.count()
        self._paused_until = 0.0
        # Replaced as a whole, so that another thread never reads the code of one pause with the time of another.
        self._submissions = ("", 0.0)

    def add(self, ip: str) -> None:
        """Schedule a new address."""
        self._fresh.append(Task(ip))
        self.total += 1

    def later(self, task: Task, seconds: float) -> None:
        """Schedule a task again, after a delay."""
        heappush(self._due[task.asks], (self._clock() + seconds, next(self._numbers), task))

    def pause_all(self, seconds: float) -> None:
        """Hold back every task; a longer pause stays as it is."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def pause_submissions(self, code: str, seconds: float) -> None:
        """Hold back submissions alone. code: of the service's refusal."""
        self._submissions = (code, max(self._submissions[1], self._clock() + seconds))

    def take(self) -> Task | None:
        """Remove and return the first task that may go on now: what was asked before, then new addresses."""
        now = self._clock()
        ready = [
            queue[0]
            for asks, queue in self._due.items()
            if queue and queue[0][0] <= now and self._opens_at(asks) <= now
        ]
        if ready:
            task = min(ready)[2]
            heappop(self._due[task.asks])
            return task
        if self._fresh and self._opens_at("submit") <= now:
            return self._fresh.popleft()
        return None

    def next_at(self) -> float | None:
        """Return the time on the clock at which the next task may go on; None: there is no task."""
        times = [max(queue[0][0], self._opens_at(asks)) for asks, queue in self._due.items() if queue]
        if self._fresh:
            times.append(self._opens_at("submit"))
        return min(times, default=None)

    def is_empty(self) -> bool:
        """Return whether no task is left."""
        return not self._fresh and not any(self._due.values())

    @property
    def pending(self) -> int:
        """The addresses that the service has accepted and that are polled again."""
        return len(self._due["poll"])

    @property
    def waiting(self) -> tuple[str, float] | None:
        """The code of the refusal that pauses submissions, and the seconds left; None: they are not paused."""
        code, paused_until = self._submissions
        seconds = paused_until - self._clock()
        return (code, seconds) if seconds > 0 else None

    def _opens_at(self, asks: Asks) -> float:
        return max(self._paused_until, self._submissions[1]) if asks == "submit" else self._paused_until
