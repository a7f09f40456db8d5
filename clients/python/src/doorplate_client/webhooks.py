"""Verification of webhooks (Standard Webhooks, docs/webhooks.md of the service)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Iterable, Mapping, Sequence, cast

from .errors import WebhookVerificationError
from .types import WebhookEvent

SKEW_SECONDS = 300
_SECRET = re.compile(r"whsec_([A-Za-z0-9+/]{32,}={0,2})")
_ID = re.compile(r"evt_[A-Za-z0-9_-]{1,100}")
_TIMESTAMP = re.compile(r"[0-9]{10,11}")
_SIGNATURES = re.compile(r"v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?")

_RAW = (
    "pass the request's raw bytes, before any parser: request.get_data() in Flask, request.body in Django, "
    "await request.body() in FastAPI"
)

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


def verify_webhook(
    secret: str | Sequence[str], headers: Headers, body: bytes | str, *, now: float | None = None
) -> WebhookEvent:
    """Return the event of a request that the service has signed.

    secret: the endpoint's signing secret; several during a rotation.
    headers: of the request, names in any case, as a mapping or as pairs.
    body: exactly as received, before any parsing.
    now: seconds since 1970, for tests.

    Store the event unless one with its ``id`` is stored, answer with a 2xx, then work on it.
    Raises WebhookVerificationError if the request is not the service's, ValueError if a secret is malformed,
    TypeError if the body is a parsed object.
    """
    if not isinstance(body, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"body is a {type(body).__name__}: {_RAW}")
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    event_id = _header(pairs, "webhook-id", _ID)
    timestamp = _header(pairs, "webhook-timestamp", _TIMESTAMP)
    given = _header(pairs, "webhook-signature", _SIGNATURES).split(" ")
    raw = body.encode() if isinstance(body, str) else bytes(body)

    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets:
        raise ValueError("secret must be a signing secret (whsec_...)")
    signed = f"{event_id}.{timestamp}.".encode() + raw
    expected = [
        "v1," + base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest()).decode() for one in secrets
    ]
    # All pairs are compared, so that the time does not depend on which one matches.
    if not any([hmac.compare_digest(one, other) for one in expected for other in given]):
        raise WebhookVerificationError(
            "signature", f"no signature matches a secret; if the body was parsed and serialised again, {_RAW}"
        )
    if abs((time.time() if now is None else now) - int(timestamp)) > SKEW_SECONDS:
        raise WebhookVerificationError("timestamp", "the timestamp is too old or too new")
    try:
        event = json.loads(raw)
    except ValueError:
        event = None
    if not isinstance(event, dict) or event.get("id") != event_id:
        raise WebhookVerificationError("event", "the event has another id than its header")
    return cast(WebhookEvent, event)


def _key(secret: str) -> bytes:
    match = _SECRET.fullmatch(secret)
    if not match:
        raise ValueError("secret must be a signing secret (whsec_...)")
    return base64.b64decode(match[1] + "=" * (-len(match[1]) % 4))


def _header(pairs: list[tuple[str, str]], name: str, form: re.Pattern[str]) -> str:
    values = [value for key, value in pairs if key.lower() == name]
    # Two values that a server joined with a comma do not have the form.
    if len(values) == 1 and form.fullmatch(values[0]):
        return values[0]
    raise WebhookVerificationError("headers", f"{name} is missing, malformed or there twice")
