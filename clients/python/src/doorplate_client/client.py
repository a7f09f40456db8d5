"""Calls of the API with one partner's key. One file, because the client and its groups of calls use each other."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, Callable, Generic, Iterable, Iterator, Mapping, Sequence, TypeVar, cast

from ._transport import Answer, Transport
from .errors import DoorplateError
from .ledger import LedgerProof, verify_ledger
from .lookup_many import LookupMany
from .types import (
    CompletedReveal,
    CustomDomain,
    CustomDomainDeleted,
    CustomDomainList,
    Health,
    LedgerAnchor,
    LedgerEntry,
    LedgerPage,
    Lookup,
    Pending,
    Reveal,
    SessionPreview,
    Tracker,
    TrackerDeleted,
    TrackerList,
    TrackerUsage,
    Usage,
    Webhook,
    WebhookDeleted,
    WebhookDelivery,
    WebhookDeliveryDetail,
    WebhookList,
    WebhookRecovery,
    WebhookRecoveryStarted,
    WebhookSecret,
    WebhookTest,
)

POLL_SECONDS = 15.0
Item = TypeVar("Item")


def new_idempotency_key() -> str:
    """Return a UUID v4. Keep it with the session before the reveal is requested."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Revealed:
    """idempotency_key: reveal with it again, and it is the same reveal and no second unit."""

    idempotency_key: str
    receipt: CompletedReveal


@dataclass(frozen=True)
class Page(Generic[Item]):
    """cursor: where to go on after this page; None if nothing follows."""

    items: Sequence[Item]
    cursor: str | None


class Feed(Generic[Item]):
    """A list, page by page. Iterate it, or its ``pages()``.

    ``cursor`` is after the last page whose items have all been taken: a feed that begins there misses nothing, and
    repeats the items of one page at most.
    """

    def __init__(
        self, read: Callable[[str | None], tuple[Page[Item], bool]], cursor: str | None, pause: Callable[[], None] | None
    ) -> None:
        self._read = read
        self._pause = pause
        self.cursor = cursor

    def pages(self) -> Iterator[Page[Item]]:
        while True:
            page, has_more = self._read(self.cursor)
            if page.items:
                yield page
            self.cursor = page.cursor
            if has_more:
                continue
            if self._pause is None:
                return
            self._pause()

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page.items


class Client:
    """Every call raises DoorplateError if it fails, and ValueError for arguments that no request can be made of.

    base_url: of the service, without a path. api_key: keep it on servers.
    timeout: of one attempt, seconds. retries: after the first attempt. deadline: of a call that polls, seconds.
    """

    def __init__(
        self, base_url: str, api_key: str, *, timeout: float = 15.0, retries: int = 4, deadline: float = 120.0
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must begin with http:// or https://")
        if not api_key or not api_key.isascii() or any(c.isspace() for c in api_key):
            raise ValueError("api_key must be an API key")
        self._transport = Transport(base_url.rstrip("/"), api_key, timeout, retries)
        self._deadline = deadline
        self.trackers = Trackers(self)
        self.domains = Domains(self)
        self.webhooks = Webhooks(self)

    # Lookups

    def lookup(self, ip: str, *, deadline: float | None = None, wait_for_refresh: bool = False) -> Lookup:
        """Return the result for an address; request and poll it if there is none.

        deadline: seconds. wait_for_refresh: wait for the refresh of a stale result too.
        """
        end = self._end(deadline)

        def post() -> Answer:
            return self._transport.call("POST", "/v1/lookup", body={"ip": ip}, deadline=end)

        def poll(last: Mapping[str, Any]) -> Answer:
            # A GET starts nothing: a deferred refresh has to be requested again.
            if last["status"] == "complete" and last["refresh_status"] != "pending":
                return post()
            return self._transport.call("GET", "/v1/lookup", query={"ip": ip}, deadline=end)

        def is_done(state: Mapping[str, Any]) -> bool:
            if state["status"] != "complete":
                return False
            return not wait_for_refresh or (not state["stale"] and state["refresh_status"] == "not_needed")

        return cast(Lookup, self._until(post, poll, is_done, end))

    def request_lookup(self, ip: str) -> Lookup | Pending:
        """Request the result without waiting for it."""
        return cast("Lookup | Pending", self._body("POST", "/v1/lookup", body={"ip": ip}))

    def read_lookup(self, ip: str) -> Lookup | Pending:
        """Return what is saved or under way; starts nothing."""
        return cast("Lookup | Pending", self._body("GET", "/v1/lookup", query={"ip": ip}))

    def lookup_many(
        self, addresses: Iterable[str], *, concurrency: int = 8, attempts: int = 8, skip: Iterable[str] = ()
    ) -> LookupMany:
        """Look up each address once, however it is spelled; iterate the results, which come in no fixed order.

        An address that fails has its error as the result and does not end the others. The iteration waits as long as
        the service asks. addresses: a thread of its own reads an iterator or generator, as its items come.
        concurrency: requests under way at once. attempts: of one request whose outcome is unknown, before its error is
        the result. skip: addresses that an earlier run has finished.
        """
        return LookupMany(self._transport, addresses, concurrency=concurrency, attempts=attempts, skip=skip)

    # Sessions and reveals

    def sessions(
        self,
        *,
        tracker_id: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        follow_every: float | None = None,
    ) -> Feed[SessionPreview]:
        """Return the feed of sessions, oldest first. follow_every: seconds between looks for newer ones; None: end."""
        if follow_every is not None and follow_every < 1:
            raise ValueError("follow_every must be 1 or more")

        def read(at: str | None) -> tuple[Page[SessionPreview], bool]:
            page = self._body("GET", "/v1/sessions", query={"tracker_id": tracker_id, "cursor": at, "limit": limit})
            return Page(page["sessions"], page["next_cursor"]), page["has_more"]

        return Feed(read, cursor, None if follow_every is None else lambda: self._transport.pause(follow_every))

    def session(self, session_id: str) -> SessionPreview:
        """Return one session without revealing it."""
        return cast(SessionPreview, self._body("GET", "/v1/sessions/{id}", ids={"id": session_id}))

    def reveal(self, session_id: str, *, idempotency_key: str | None = None, deadline: float | None = None) -> Revealed:
        """Reveal the company behind a session and wait for it. Costs a unit if there is any data, once per key.

        idempotency_key: a UUID v4; a new one by default, which the result and every error carry.
        """
        key = idempotency_key or new_idempotency_key()
        end = self._end(deadline)

        def poll(last: Mapping[str, Any]) -> Answer:
            return self._transport.call("GET", "/v1/reveals/{id}", ids={"id": last["reveal_id"]}, deadline=end)

        try:
            receipt = self._until(
                lambda: self._reveal(session_id, key, end), poll, lambda state: state["status"] == "complete", end
            )
        except DoorplateError as error:
            error.idempotency_key = key
            raise
        return Revealed(key, cast(CompletedReveal, receipt))

    def request_reveal(self, session_id: str, idempotency_key: str) -> Reveal:
        """Request a reveal without waiting for it."""
        return cast(Reveal, self._reveal(session_id, idempotency_key, None).body)

    def read_reveal(self, reveal_id: str) -> Reveal:
        """Return the receipt of a reveal; never charges."""
        return cast(Reveal, self._body("GET", "/v1/reveals/{id}", ids={"id": reveal_id}))

    # The rest

    def usage(self, start: date | None = None, end: date | None = None) -> Usage:
        """Return the usage of this key from ``start`` to before ``end`` (UTC days); today by default."""
        return cast(Usage, self._body("GET", "/v1/usage", query=_range(start, end)))

    def ledger(
        self, *, month: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> Feed[LedgerEntry]:
        """Return the entries of a month that a bill is made of. month: UTC, ``2026-03``; the current one by default."""
        known = month

        def read(at: str | None) -> tuple[Page[LedgerEntry], bool]:
            # Fixed by the first page: its cursor is of no use in another month.
            nonlocal known
            page = self._ledger_page(known, at, limit)
            known = page["month"]
            return Page(page["entries"], page["next_cursor"]), page["has_more"]

        return Feed(read, cursor, None)

    def verify_ledger(
        self, *, anchors: Iterable[LedgerAnchor] = (), on_entry: Callable[[LedgerEntry], None] | None = None
    ) -> LedgerProof:
        """Read the whole ledger and verify it: numbers, digests, totals, and that it still fits every anchor.

        A difference raises nothing: the result names the first. anchors: of earlier calls, which the caller kept.
        on_entry: called with each verified entry, in order. Raises ImportError without the package ``cryptography``
        (the extra ``ledger``).
        """
        return verify_ledger(self._ledger_page, anchors, on_entry)

    def health(self) -> Health:
        """Return whether the service runs."""
        return cast(Health, self._body("GET", "/healthz"))

    def _ledger_page(
        self, month: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> LedgerPage:
        query = {"month": month, "cursor": cursor, "limit": limit}
        return cast(LedgerPage, self._body("GET", "/v1/ledger", query=query))

    def _reveal(self, session_id: str, key: str, end: float | None) -> Answer:
        return self._transport.call(
            "POST",
            "/v1/sessions/{id}/reveal",
            ids={"id": session_id},
            headers={"Idempotency-Key": key},
            deadline=end,
        )

    def _end(self, deadline: float | None) -> float:
        return self._transport.clock() + (self._deadline if deadline is None else deadline)

    def _body(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        return self._transport.call(method, path, **request).body

    def _until(
        self,
        ask: Callable[[], Answer],
        poll: Callable[[Mapping[str, Any]], Answer],
        is_done: Callable[[Mapping[str, Any]], bool],
        end: float,
    ) -> Mapping[str, Any]:
        answer = ask()
        while not is_done(answer.body):
            try:
                wait = float(answer.retry_after or POLL_SECONDS)
                if wait > end - self._transport.clock():
                    raise DoorplateError(
                        "not done before the deadline; the work goes on", kind="deadline", outcome="unknown"
                    )
                self._transport.pause(wait, end)
                answer = poll(answer.body)
            except DoorplateError as error:
                # The work was accepted: an error of the poll says nothing about it.
                error.outcome = "unknown"
                error.unfinished = answer.body
                raise
        return answer.body


class Trackers:
    """Pixels of websites."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> TrackerList:
        return cast(TrackerList, self._client._body("GET", "/v1/trackers"))

    def create(self, name: str, origins: Sequence[str], *, customer_reference: str | None = None) -> Tracker:
        """Not repeated if its outcome is unknown: list first."""
        body = {"name": name, "origins": [*origins], "customer_reference": customer_reference}
        return cast(Tracker, self._client._body("POST", "/v1/trackers", body=body, repeatable=False))

    def update(self, tracker_id: str, **changes: Any) -> Tracker:
        """changes: ``name``, ``origins``, ``customer_reference``. Visits are judged by new origins within a second."""
        return cast(Tracker, self._client._body("PATCH", "/v1/trackers/{id}", ids={"id": tracker_id}, body=changes))

    def disable(self, tracker_id: str) -> Tracker:
        return cast(Tracker, self._client._body("DELETE", "/v1/trackers/{id}", ids={"id": tracker_id}))

    def enable(self, tracker_id: str) -> Tracker:
        return cast(Tracker, self._client._body("POST", "/v1/trackers/{id}/enable", ids={"id": tracker_id}, body={}))

    def delete(self, tracker_id: str) -> TrackerDeleted:
        request = self._client._body("POST", "/v1/trackers/{id}/delete", ids={"id": tracker_id}, body={})
        return cast(TrackerDeleted, request)

    def usage(self, tracker_id: str, start: date | None = None, end: date | None = None) -> TrackerUsage:
        query = _range(start, end)
        return cast(
            TrackerUsage, self._client._body("GET", "/v1/trackers/{id}/usage", ids={"id": tracker_id}, query=query)
        )


class Domains:
    """Custom host names of trackers' pixels."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, tracker_id: str) -> CustomDomainList:
        return cast(CustomDomainList, self._call("GET", tracker_id))

    def create(self, tracker_id: str, hostname: str) -> CustomDomain:
        return cast(CustomDomain, self._call("POST", tracker_id, body={"hostname": hostname}))

    def get(self, tracker_id: str, domain_id: str) -> CustomDomain:
        return cast(CustomDomain, self._call("GET", tracker_id, domain_id))

    def delete(self, tracker_id: str, domain_id: str) -> CustomDomainDeleted:
        return cast(CustomDomainDeleted, self._call("DELETE", tracker_id, domain_id))

    def _call(self, method: str, tracker_id: str, domain_id: str | None = None, **request: Any) -> dict[str, Any]:
        ids = {"id": tracker_id} if domain_id is None else {"id": tracker_id, "domain": domain_id}
        path = "/v1/trackers/{id}/domains" + ("" if domain_id is None else "/{domain}")
        return self._client._body(method, path, ids=ids, **request)


class Webhooks:
    """Endpoints that receive events, and the history of deliveries."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> WebhookList:
        return cast(WebhookList, self._client._body("GET", "/v1/webhooks"))

    def create(self, name: str, url: str, events: Sequence[str], *, tracker_id: str | None = None) -> WebhookSecret:
        """Show ``signing_secret``, once. Not repeated if its outcome is unknown: list first, then rotate the secret."""
        body = {"name": name, "url": url, "events": [*events], "tracker_id": tracker_id}
        return cast(WebhookSecret, self._client._body("POST", "/v1/webhooks", body=body, repeatable=False))

    def get(self, webhook_id: str) -> Webhook:
        return cast(Webhook, self._one("GET", webhook_id))

    def update(self, webhook_id: str, **changes: Any) -> Webhook:
        """changes: ``name``, ``events``, ``enabled``."""
        return cast(Webhook, self._one("PATCH", webhook_id, body=changes))

    def delete(self, webhook_id: str) -> WebhookDeleted:
        return cast(WebhookDeleted, self._one("DELETE", webhook_id))

    def rotate_secret(self, webhook_id: str) -> WebhookSecret:
        """Show the new ``signing_secret``, once; both secrets sign for 24 hours."""
        return cast(WebhookSecret, self._one("POST", webhook_id, "/rotate-secret", body={}, repeatable=False))

    def test(self, webhook_id: str) -> WebhookTest:
        """Queue a test event; the delivery shows whether it arrived."""
        return cast(WebhookTest, self._one("POST", webhook_id, "/test", body={}, repeatable=False))

    def deliveries(
        self, webhook_id: str, *, status: str | None = None, cursor: str | None = None
    ) -> Feed[WebhookDelivery]:
        """Return the history, newest first."""

        def read(at: str | None) -> tuple[Page[WebhookDelivery], bool]:
            page = self._one("GET", webhook_id, "/deliveries", query={"status": status, "cursor": at})
            return Page(page["deliveries"], page["next_cursor"] or None), page["has_more"]

        return Feed(read, cursor, None)

    def delivery(self, webhook_id: str, delivery_id: str) -> WebhookDeliveryDetail:
        return cast(WebhookDeliveryDetail, self._one("GET", webhook_id, "/deliveries/{delivery}", delivery_id))

    def retry_delivery(self, webhook_id: str, delivery_id: str) -> WebhookDeliveryDetail:
        """Deliver the event again, under the same id."""
        path = "/deliveries/{delivery}/retry"
        return cast(
            WebhookDeliveryDetail, self._one("POST", webhook_id, path, delivery_id, body={}, repeatable=False)
        )

    def recover(self, webhook_id: str, since: datetime | str) -> WebhookRecoveryStarted:
        """Deliver again what failed or waits and was queued since then; return the recovery that runs, if one does.

        since: an aware datetime, or a UTC timestamp.
        """
        body = {"since": since if isinstance(since, str) else _utc(since)}
        return cast(WebhookRecoveryStarted, self._one("POST", webhook_id, "/recover", body=body))

    def recovery(self, webhook_id: str, recovery_id: str) -> WebhookRecovery:
        """Return the progress of a recovery."""
        path = "/v1/webhooks/{id}/recoveries/{recovery}"
        ids = {"id": webhook_id, "recovery": recovery_id}
        return cast(WebhookRecovery, self._client._body("GET", path, ids=ids))

    def _one(
        self, method: str, webhook_id: str, path: str = "", delivery_id: str | None = None, **request: Any
    ) -> dict[str, Any]:
        ids = {"id": webhook_id} if delivery_id is None else {"id": webhook_id, "delivery": delivery_id}
        return self._client._body(method, "/v1/webhooks/{id}" + path, ids=ids, **request)


def _utc(at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError("since must be an aware datetime, or a UTC timestamp")
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _range(start: date | None, end: date | None) -> dict[str, str | None]:
    return {"from": start and start.isoformat(), "to": end and end.isoformat()}
