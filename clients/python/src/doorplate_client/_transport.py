"""Requests with retries: as many attempts as are safe and worth while."""

from __future__ import annotations

import io
import json
import random
import ssl
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, Callable, Mapping
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from .errors import DoorplateError

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
# Five times the longest answer of the service.
MAX_BODY_BYTES = 64 * 1024 * 1024
_UNKNOWN = "its outcome is unknown"


class _NoRedirects(HTTPRedirectHandler):
    """The key goes to the service itself only."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class _TimedReader(io.RawIOBase):
    """Reads a socket until a moment of the monotonic clock.

    The timeout of a socket is one for each read, so that a server could send a byte of its headers now and then for ever.
    """

    def __init__(self, sock: Any, end: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._end = end
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        count = self._raw.readinto(buffer)
        self.ended = count == 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """What a response needs of its socket."""

    def __init__(self, sock: Any, end: float) -> None:
        self.reader = _TimedReader(sock, end)

    def makefile(self, _mode: str) -> Any:
        return io.BufferedReader(self.reader)


class _TimedResponse(HTTPResponse):
    def __init__(self, sock: Any, *args: Any, end: float, **options: Any) -> None:
        timed = _TimedSocket(sock, end)
        self._reader = timed.reader
        super().__init__(timed, *args, **options)  # type: ignore[arg-type]

    def begin(self) -> None:
        super().begin()
        # The end of the connection is taken for that of the headers.
        if self._reader.ended:
            raise IncompleteRead(b"")


class _Timed:
    """A connection for one request, whose timeout is one for all of it. A name that is looked up is not within it."""

    timeout: float
    sock: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._end = time.monotonic() + self.timeout
        self.response_class = partial(_TimedResponse, end=self._end)

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        self.sock.settimeout(max(0.001, self._end - time.monotonic()))


class _HTTP(_Timed, HTTPConnection):
    pass


class _HTTPS(_Timed, HTTPSConnection):
    pass


class _HTTPHandler(HTTPHandler):
    def http_open(self, req: Request) -> Any:
        return self.do_open(_HTTP, req)


class _HTTPSHandler(HTTPSHandler):
    def https_open(self, req: Request) -> Any:
        return self.do_open(_HTTPS, req, context=_tls())


@cache
def _tls() -> ssl.SSLContext:
    # One for all requests: to make one reads the system's certificates, which takes longer than a request.
    return ssl.create_default_context()


@cache
def _opener() -> OpenerDirector:
    return build_opener(_NoRedirects, _HTTPHandler, _HTTPSHandler)


@dataclass(frozen=True)
class Answer:
    body: dict[str, Any]
    retry_after: int | None


@dataclass(frozen=True)
class Transport:
    """base_url without a trailing slash; times in seconds; sleep and clock are replaced in tests."""

    base_url: str
    api_key: str
    timeout: float
    retries: int
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def call(
        self,
        method: str,
        path: str,
        *,
        ids: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = True,
        deadline: float | None = None,
    ) -> Answer:
        """Calls, and repeats where another attempt is safe and can help.

        deadline: on the clock. Raises DoorplateError; ValueError for an empty id.
        """
        name = f"{method} {path}"
        url = self.base_url + _filled(path, ids or {}) + _query(query or {})
        unknown = False
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(name, method, url, body, headers or {}, deadline)
            except DoorplateError as error:
                unknown = unknown or error.outcome == "unknown"
                # One attempt with an unknown outcome makes the outcome of the whole call unknown.
                error.outcome = "unknown" if unknown else "refused"
                wait = float(error.retry_after or FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
                longest = LONGEST_WAIT_SECONDS if deadline is None else deadline - self.clock()
                if attempt > self.retries or not _may_help(error, repeatable) or wait > longest:
                    raise
                self.pause(wait, deadline)

    def pause(self, seconds: float, deadline: float | None = None) -> None:
        """Sleeps, a little longer than asked so that many callers do not come back at one moment."""
        room = seconds / 10 if deadline is None else min(seconds / 10, (deadline - self.clock() - seconds) / 2)
        self.sleep(seconds + random.random() * max(0.0, room))

    def _attempt(
        self,
        name: str,
        method: str,
        url: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        deadline: float | None,
    ) -> Answer:
        left = self.timeout if deadline is None else min(self.timeout, deadline - self.clock())
        if left <= 0:
            raise DoorplateError(f"{name}: the deadline has passed; {_UNKNOWN}", kind="deadline", outcome="unknown")
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data=data, method=method)
        for key, value in {**headers, "Accept": "application/json", "Authorization": f"Bearer {self.api_key}"}.items():
            request.add_header(key, value)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with _open(request, left) as response:
                return _understood(name, response.status, response.headers, _read(response))
        except TimeoutError as error:
            raise DoorplateError(f"{name}: no answer in time; {_UNKNOWN}", kind="timeout", outcome="unknown") from error
        except (OSError, HTTPException) as error:
            timed_out = isinstance(getattr(error, "reason", None), TimeoutError)
            raise DoorplateError(
                f"{name}: no answer; {_UNKNOWN}", kind="timeout" if timed_out else "network", outcome="unknown"
            ) from error


def _read(response: Any) -> bytes:
    chunks: list[bytes] = []
    length = 0
    while chunk := response.read1(65_536):
        chunks.append(chunk)
        length += len(chunk)
        if length > MAX_BODY_BYTES:
            raise HTTPException("the answer is too long")
    # read1 takes the end of the connection for that of the body.
    if response.length:
        raise IncompleteRead(b"", response.length)
    return b"".join(chunks)


def _open(request: Request, timeout: float) -> Any:
    """Return the response, whatever its status."""
    try:
        return _opener().open(request, timeout=timeout)
    except HTTPError as error:
        return error


def _understood(name: str, status: int, headers: Any, raw: bytes) -> Answer:
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        parsed = None
    body = parsed if isinstance(parsed, dict) else None
    retry_after = _seconds(headers)
    if 200 <= status < 300 and body is not None:
        return Answer(body, retry_after)
    refusal = body.get("error") if body else None
    code = refusal.get("code") if isinstance(refusal, dict) else None
    said = f"{code}: {refusal.get('message')}" if isinstance(refusal, dict) else "not an answer of the API"
    # A 408 says nothing about the work.
    refused = 400 <= status < 500 and status != 408
    raise DoorplateError(
        f"{name}: {status} {said}" + ("" if refused else f"; {_UNKNOWN}"),
        kind="answer",
        outcome="refused" if refused else "unknown",
        status=status,
        code=code,
        request_id=(body or {}).get("request_id") or headers.get("X-Request-ID"),
        retry_after=retry_after,
        body=body,
    )


def _may_help(error: DoorplateError, repeatable: bool) -> bool:
    # A 429 comes before anything is done.
    if error.status == 429:
        return True
    return repeatable and (error.status is None or error.status == 408 or error.status >= 500)


def _filled(path: str, ids: Mapping[str, str]) -> str:
    for name, value in ids.items():
        if value in ("", ".", ".."):
            raise ValueError(f"{name} must be an id")
        path = path.replace("{" + name + "}", quote(value, safe=""))
    return path


def _query(values: Mapping[str, Any]) -> str:
    given = {name: str(value) for name, value in values.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _seconds(headers: Any) -> int | None:
    value = (headers.get("Retry-After") or "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    try:
        sent = _date(headers.get("Date") or "")
        return max(0, round((_date(value) - sent).total_seconds()))
    except (TypeError, ValueError, OverflowError):
        return None


def _date(text: str) -> datetime:
    """One of the three forms of RFC 9110, 5.6.7; the one without a zone is UTC as well."""
    date = parsedate_to_datetime(text)
    return date.replace(tzinfo=timezone.utc) if date.tzinfo is None else date
