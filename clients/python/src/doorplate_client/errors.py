"""What a failed call knows of its failure."""

from __future__ import annotations

from typing import Any, Literal, Mapping

Kind = Literal["answer", "network", "timeout", "deadline"]
Outcome = Literal["refused", "unknown"]


class DoorplateError(Exception):
    """Every way in which a call can fail. No error is ever "no company".

    kind: ``answer`` (an error answer), ``network`` (no connection, or a broken one), ``timeout`` (of one attempt),
        ``deadline`` (of a call that polls).
    outcome: ``refused`` if the service did nothing; ``unknown`` if the work may have been done or be under way.
    status, code, request_id, body: of the answer, or None.
    retry_after: seconds that the service asks to wait, or None.
    idempotency_key: of a reveal; repeat the reveal with it.
    unfinished: of a call that polls, the last state of the work.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind,
        outcome: Outcome,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.outcome: Outcome = outcome
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body
        self.idempotency_key: str | None = None
        self.unfinished: Mapping[str, Any] | None = None


class WebhookVerificationError(Exception):
    """The request is not one of the service's, or is too old. Answer it with a 400.

    fault: ``headers``, ``timestamp``, ``signature`` or ``event``.
    """

    def __init__(self, fault: Literal["headers", "timestamp", "signature", "event"], message: str) -> None:
        super().__init__(message)
        self.fault = fault
