"""Lookups of many addresses: each once, at the pace that the service allows.

The caller's thread decides what is asked next, and takes every outcome. Each request has a thread of its own, which does
nothing else, so that closing the iteration leaves no thread waiting for work.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import Callable, Iterable, Iterator, Union, cast

from ._addresses import canonical_address
from ._lookup_schedule import Asks, LookupSchedule, Task
from ._transport import Answer, Transport
from .errors import DoorplateError
from .types import Lookup

POLL_SECONDS = 15.0
FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 60.0
# On some systems Ctrl-C ends no wait that is under way, so that none may be long.
LONGEST_WAIT_SECONDS = 1.0
# Limits of new work: saved results and polls go on.
LIMITS_OF_NEW_WORK = frozenset({"pending_limit", "enrichment_limit", "enrichment_capacity"})


@dataclass(frozen=True)
class LookedUp:
    """The result of one address, or the error in its place. An error is never "no company"."""

    ip: str
    result: Lookup | None
    error: DoorplateError | None


@dataclass(frozen=True)
class Waiting:
    """Why no new address is submitted at the moment (the code of the refusal), and for how many seconds still."""

    code: str
    seconds: float


@dataclass(frozen=True)
class LookupProgress:
    """How far the lookups are.

    total: distinct addresses read so far, without those to skip. done: results taken.
    pending: accepted by the service and not finished. waiting: None if new addresses are submitted.
    """

    total: int
    done: int
    pending: int
    waiting: Waiting | None


@dataclass(frozen=True)
class _Outcome:
    """What came of one request. is_final: no wait would help."""

    task: Task
    answer: Answer | None
    error: Exception | None
    is_final: bool = False


@dataclass(frozen=True)
class _Address:
    text: str


@dataclass(frozen=True)
class _AllRead:
    """The end of the addresses. error: what ended them too early."""

    error: BaseException | None


_Event = Union[_Outcome, _Address, _AllRead]


class LookupMany(Iterator[LookedUp]):
    """The results of many lookups, in the order in which they come. ``Client.lookup_many`` makes it.

    ``close()``, which leaving its ``with`` block calls, ends it: no further request begins. So does an exception in the
    iteration, KeyboardInterrupt included. What the service has accepted goes on there.
    """

    def __init__(
        self,
        transport: Transport,
        addresses: Iterable[str],
        *,
        concurrency: int,
        attempts: int,
        skip: Iterable[str],
    ) -> None:
        if isinstance(addresses, str):
            raise TypeError("addresses must be several, not one text")
        if concurrency < 1 or attempts < 1:
            raise ValueError("concurrency and attempts must be 1 or more")
        # The schedule repeats requests; the transport does not.
        self._transport = replace(transport, retries=0)
        self._concurrency = concurrency
        self._attempts = attempts
        self._schedule = LookupSchedule(transport.clock)
        self._allowance = _Allowance(self._transport)
        self._known = {canonical_address(ip) for ip in skip}
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._under_way: dict[Asks, int] = {"submit": 0, "poll": 0}
        self._finished: deque[LookedUp] = deque()
        self._failure: BaseException | None = None
        self._done = 0
        self._closed = threading.Event()
        weakref.finalize(self, self._closed.set)
        # A list is known as a whole before the first request; what comes by and by is looked up as it comes.
        self._unread = addresses if isinstance(addresses, Iterator) else None
        self._is_reading = self._unread is not None
        if self._unread is None:
            for ip in addresses:
                self._add(ip)

    @property
    def progress(self) -> LookupProgress:
        """The progress at this moment; any thread may read it."""
        waiting = self._schedule.waiting
        return LookupProgress(
            total=self._schedule.total,
            done=self._done,
            pending=self._schedule.pending + self._under_way["poll"],
            waiting=None if waiting is None else Waiting(*waiting),
        )

    def __next__(self) -> LookedUp:
        if self._closed.is_set():
            raise StopIteration
        try:
            looked = self._next()
        except BaseException:
            self.close()
            raise
        if looked is None:
            self.close()
            raise StopIteration
        self._done += 1
        return looked

    def close(self) -> None:
        """Begin no further request. Those under way end by themselves, and their results are dropped."""
        self._closed.set()

    def __enter__(self) -> LookupMany:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _next(self) -> LookedUp | None:
        """Return the next result; None: there is none any more."""
        if self._unread is not None:
            _run(_read, self._unread, self._events, self._closed)
            self._unread = None
        while True:
            while not self._events.empty():
                self._handle(self._events.get())
            self._start_due()
            if self._finished:
                return self._finished.popleft()
            if self._failure is not None:
                raise self._failure
            if not self._is_reading and self._requests == 0 and self._schedule.is_empty():
                return None
            self._wait()

    @property
    def _requests(self) -> int:
        return sum(self._under_way.values())

    def _start_due(self) -> None:
        while self._failure is None and self._requests < self._concurrency:
            task = self._schedule.take()
            if task is None:
                return
            self._under_way[task.asks] += 1
            _run(_attempt, self._transport, task, self._allowance, self._events)

    def _wait(self) -> None:
        """Wait until a request has ended, one may begin, or an address has come."""
        at = self._schedule.next_at() if self._requests < self._concurrency else None
        seconds = LONGEST_WAIT_SECONDS if at is None else max(0.0, at - self._transport.clock())
        if not self._is_reading and self._requests == 0:
            self._transport.sleep(seconds)
            return
        try:
            self._handle(self._events.get(timeout=min(seconds, LONGEST_WAIT_SECONDS)))
        except Empty:
            pass

    def _handle(self, event: _Event) -> None:
        if isinstance(event, _Address):
            self._add(event.text)
        elif isinstance(event, _AllRead):
            self._is_reading = False
            self._failure = self._failure or event.error
        else:
            self._under_way[event.task.asks] -= 1
            self._settle(event)

    def _add(self, ip: str) -> None:
        """Schedule each address once, however it is spelled."""
        canonical = canonical_address(ip)
        if canonical not in self._known:
            self._known.add(canonical)
            self._schedule.add(canonical)

    def _settle(self, outcome: _Outcome) -> None:
        task, answer, error = outcome.task, outcome.answer, outcome.error
        if answer is not None and answer.body.get("status") == "complete":
            self._finished.append(LookedUp(task.ip, cast(Lookup, answer.body), None))
        elif answer is not None:
            self._schedule.later(Task(task.ip, "poll"), answer.retry_after or POLL_SECONDS)
        elif not isinstance(error, DoorplateError):
            self._failure = self._failure or error
        elif outcome.is_final or not self._try_again(task, error):
            self._finished.append(LookedUp(task.ip, None, error))

    def _try_again(self, task: Task, error: DoorplateError) -> bool:
        """Schedule a failed task again, and return whether that may help; if not, its error is the result."""
        if error.status == 429:
            self._pause(error.code or "", error.retry_after or 1)
            self._schedule.later(task, 0)
            return True
        if error.code == "not_requested":
            self._schedule.later(replace(task, asks="submit"), 0)
            return True
        failures = task.failures + 1
        if error.outcome == "refused" or failures >= self._attempts:
            return False
        # The exponent is limited, since no number of attempts is too many.
        backoff = min(FIRST_RETRY_SECONDS * 2 ** min(task.failures, 30), LONGEST_RETRY_SECONDS)
        self._schedule.later(replace(task, failures=failures), error.retry_after or backoff)
        return True

    def _pause(self, code: str, seconds: float) -> None:
        if code in LIMITS_OF_NEW_WORK:
            self._schedule.pause_submissions(code, seconds)
        else:
            self._schedule.pause_all(seconds)


class _Allowance:
    """Whether the key may look up saved addresses alone. Asked once, by the first request that needs to know."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._takes_none: bool | None = None

    def takes_none(self) -> bool:
        with self._lock:
            if self._takes_none is None:
                try:
                    usage = self._transport.call("GET", "/v1/usage").body
                except DoorplateError:
                    # Unknown: the request waits as for any limit, and the next one asks again.
                    return False
                self._takes_none = usage["limits"]["new_enrichments_per_day"] == 0
            return self._takes_none


def _run(work: Callable[..., None], *arguments: object) -> None:
    """Run a function in a thread that does not hold up the end of the process."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _read(addresses: Iterator[str], events: SimpleQueue[_Event], closed: threading.Event) -> None:
    try:
        for ip in addresses:
            if closed.is_set():
                return
            events.put(_Address(ip))
    except BaseException as error:
        events.put(_AllRead(error))
    else:
        events.put(_AllRead(None))


def _attempt(transport: Transport, task: Task, allowance: _Allowance, events: SimpleQueue[_Event]) -> None:
    try:
        if task.asks == "submit":
            answer = transport.call("POST", "/v1/lookup", body={"ip": task.ip})
        else:
            answer = transport.call("GET", "/v1/lookup", query={"ip": task.ip})
        events.put(_Outcome(task, answer, None))
    except DoorplateError as error:
        is_final = error.code == "enrichment_limit" and allowance.takes_none()
        events.put(_Outcome(task, None, error, is_final))
    except Exception as error:
        events.put(_Outcome(task, None, error))
