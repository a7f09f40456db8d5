"""The partner's ledger, which a bill is made of, and its verification: docs/auditing.md defines digests and anchors."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Sequence

from .types import LedgerAnchor, LedgerEntry, LedgerPage

_NO_DIGEST = "0" * 64
_PAGE = 500
# A ledger that does not begin within so many months of now has lost its beginning.
_MAX_MONTHS = 120


@dataclass(frozen=True)
class LedgerDifference:
    """The first difference of a ledger. kind: docs/auditing.md explains each.

    number: the entry's; None if it is of a month or an anchor.
    """

    kind: str
    number: int | None
    reveal_id: str | None
    detail: str


@dataclass(frozen=True)
class LedgerMonth:
    """The verified entries of a UTC month of completion, ``2026-03``."""

    month: str
    entries: int
    units: int


@dataclass(frozen=True)
class LedgerHead:
    """The last verified entry."""

    number: int
    digest: str


@dataclass(frozen=True)
class LedgerProof:
    """What a ledger was found to be. After the first difference nothing was checked.

    anchor: the service's newest, to be kept and verified against later; None if there is none yet.
    public_key: base64, the one that signed all anchors. Compare it with the one that you keep.
    """

    ok: bool
    difference: LedgerDifference | None
    months: Sequence[LedgerMonth]
    entries: int
    units: int
    head: LedgerHead | None
    anchor: LedgerAnchor | None
    public_key: str | None


ReadPage = Callable[..., LedgerPage]


def verify_ledger(
    read: ReadPage, anchors: Iterable[LedgerAnchor], on_entry: Callable[[LedgerEntry], None] | None
) -> LedgerProof:
    """Verify the ledger as it is now. read: of a page, by month, cursor and limit.

    Raises ImportError where the package ``cryptography`` is not installed.
    """
    is_signed = _signature_check()
    now = read(limit=1)
    check = _Check(now, [*anchors], is_signed, on_entry)
    try:
        check.anchors_themselves()
        month = _first_month(read, now)
        while month <= now["month"]:
            page = read(month=month, limit=_PAGE)
            check.page(page)
            while page["has_more"]:
                page = read(month=month, cursor=page["next_cursor"], limit=_PAGE)
                check.page(page)
            check.end_of_month(page)
            month = _month_at(month, 1)
        check.end()
    except _Found as found:
        return check.proof(found.difference)
    return check.proof(None)


def _first_month(read: ReadPage, now: LedgerPage) -> str:
    """Return the month of the first entry, by the first entry of each month before now."""
    page = now
    for _ in range(_MAX_MONTHS):
        if now["head"] is None:
            break
        if page["entries"] and page["entries"][0]["number"] == 0:
            return page["month"]
        page = read(month=_month_at(page["month"], -1), limit=1)
    return now["month"]


class _Found(Exception):
    """Ends a verification at its first difference."""

    def __init__(self, kind: str, detail: str, entry: Any = None) -> None:
        super().__init__(detail)
        of = entry or {}
        self.difference = LedgerDifference(kind, of.get("number"), of.get("reveal_id"), detail)


class _Check:
    """Verifies the ledger as it was at the first answer: what was added meanwhile is the next call's."""

    def __init__(
        self,
        now: LedgerPage,
        kept: list[LedgerAnchor],
        is_signed: Callable[[LedgerAnchor], bool],
        on_entry: Callable[[LedgerEntry], None] | None,
    ) -> None:
        self._is_signed = is_signed
        self._anchor = now["anchor"]
        self._anchors = kept if self._anchor is None else [*kept, self._anchor]
        self._head = now["head"]
        self._last = -1 if self._head is None else self._head["number"]
        self._on_entry = on_entry
        self._anchored_at: dict[int, list[LedgerAnchor]] = {}
        for anchor in self._anchors:
            self._anchored_at.setdefault(anchor["entries"] - 1, []).append(anchor)
        # Clocks of several processes may differ, so around a month's end numbers come in another order.
        self._early: dict[int, tuple[LedgerEntry, str]] = {}
        self._months: dict[str, tuple[int, int]] = {}
        self._reveals: set[str] = set()
        self._of_month = (0, 0)
        self._partner_id = None if self._anchor is None else self._anchor["partner_id"]
        self._number, self._digest, self._position = -1, _NO_DIGEST, -1
        self._units = 0

    def anchors_themselves(self) -> None:
        """Verify that each is signed, all by one key, and of the same partner."""
        for anchor in self._anchors:
            made_at, key = anchor["made_at"], anchor["public_key"]
            if key != self._anchors[0]["public_key"]:
                raise _Found("anchor_signature", f"the anchor of {made_at} is signed by another key: {key}")
            if not self._is_signed(anchor):
                raise _Found("anchor_signature", f"the anchor of {made_at} was changed")
            self._partner_id = self._partner_id or anchor["partner_id"]
            if anchor["partner_id"] != self._partner_id:
                partner = anchor["partner_id"]
                raise _Found("anchor_missing", f"the anchor of {made_at} is of another partner: {partner}")
        self._verify_anchors()

    def page(self, page: LedgerPage) -> None:
        for entry in page["entries"]:
            if not _is_readable(entry):
                raise _Found("unreadable_entry", "a field is missing or malformed", entry)
            entries, units = self._of_month
            self._of_month = (entries + 1, units + entry["units"])
            number = entry["number"]
            if number > self._last:
                continue
            if number <= self._number or number in self._early:
                raise _Found("number_gap", "the number is there twice", entry)
            self._early[number] = (entry, page["month"])
            while self._number + 1 in self._early:
                self._verify(*self._early.pop(self._number + 1))

    def end_of_month(self, page: LedgerPage) -> None:
        (entries, units), totals = self._of_month, page["totals"]
        if (entries, units) != (totals["entries"], totals["units"]):
            detail = (
                f"{page['month']} has {entries} entries and {units} units, "
                f"its totals say {totals['entries']} and {totals['units']}"
            )
            raise self._gap(detail) if self._early else _Found("totals_mismatch", detail)
        self._of_month = (0, 0)

    def end(self) -> None:
        if self._number < self._last:
            raise self._gap(f"the last one is {self._last}")
        if self._head is not None and self._head["digest"] != self._digest:
            said = self._head["digest"]
            raise _Found("head_mismatch", f"the head is said to have {said}, the entry has {self._digest}", self._head)
        for anchor in self._anchors:
            if anchor["entries"] - 1 > self._last:
                number, made_at = anchor["entries"] - 1, anchor["made_at"]
                raise _Found("anchor_missing", f"entry {number} was there at {made_at} and is not now")

    def proof(self, difference: LedgerDifference | None) -> LedgerProof:
        return LedgerProof(
            ok=difference is None,
            difference=difference,
            months=[LedgerMonth(month, *sums) for month, sums in sorted(self._months.items())],
            entries=self._number + 1,
            units=self._units,
            head=None if self._number < 0 else LedgerHead(self._number, self._digest),
            anchor=self._anchor,
            public_key=self._anchors[0]["public_key"] if self._anchors else None,
        )

    def _verify(self, entry: LedgerEntry, listed_in: str) -> None:
        if entry["previous"] != self._digest:
            detail = f"names {entry['previous']}, the entry before has {self._digest}"
            raise _Found("previous_mismatch", detail, entry)
        digest = _digest_of(entry)
        if digest != entry["digest"]:
            raise _Found("digest_mismatch", f"has {entry['digest']}, its fields come to {digest}", entry)
        self._partner_id = self._partner_id or entry["partner_id"]
        if entry["partner_id"] != self._partner_id:
            raise _Found("digest_mismatch", f"is an entry of {entry['partner_id']}", entry)
        position = int(entry["position"])
        if position <= self._position:
            raise _Found("order", f"position {position} is not above {self._position}", entry)
        if entry["reveal_id"] in self._reveals:
            raise _Found("duplicate_reveal", "stands in an earlier entry too", entry)
        month = entry["completed_at"][:7]
        if month != listed_in:
            detail = f"completed at {entry['completed_at']}, but stands in {listed_in}"
            raise _Found("totals_mismatch", detail, entry)
        self._reveals.add(entry["reveal_id"])
        self._units += entry["units"]
        entries, units = self._months.get(month, (0, 0))
        self._months[month] = (entries + 1, units + entry["units"])
        self._number, self._digest, self._position = entry["number"], entry["digest"], position
        self._verify_anchors()
        if self._on_entry is not None:
            self._on_entry(entry)

    def _verify_anchors(self) -> None:
        """Verify those that end with the last verified entry."""
        for anchor in self._anchored_at.get(self._number, []):
            if (anchor["head_digest"], anchor["units"]) != (self._digest, self._units):
                detail = (
                    f"had {anchor['head_digest']} and {anchor['units']} units in all at {anchor['made_at']}, "
                    f"now {self._digest} and {self._units}"
                )
                raise _Found("anchor_missing", detail, {"number": self._number})

    def _gap(self, detail: str) -> _Found:
        number = self._number + 1
        return _Found("number_gap", f"entry {number} is missing: {detail}", {"number": number})


def _is_readable(entry: LedgerEntry) -> bool:
    return (
        type(entry.get("number")) is int
        and entry.get("units") in (0, 1)
        and re.fullmatch(r"[0-9]{1,20}", str(entry.get("position"))) is not None
        and re.match(r"\d{4}-\d{2}-\d{2}T", str(entry.get("completed_at"))) is not None
    )


def _digest_of(entry: LedgerEntry) -> str:
    who = [entry["partner_id"], entry["reveal_id"], entry["tracker_id"], entry["key_id"] or "", entry["user_id"] or ""]
    what = [entry["completed_at"], str(entry["units"]), entry["position"], entry["previous"]]
    return hashlib.sha256("\n".join([str(entry["number"]), *who, *what]).encode()).hexdigest()


def _signature_check() -> Callable[[LedgerAnchor], bool]:
    """Return whether an anchor has a signature of its key (Ed25519 in DER, RFC 8410)."""
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_der_public_key
    except ImportError as error:
        raise ImportError("verify_ledger needs cryptography: pip install 'doorplate-client[ledger]'") from error

    def is_signed(anchor: LedgerAnchor) -> bool:
        values = [anchor["partner_id"], anchor["made_at"], anchor["entries"], anchor["units"], anchor["head_digest"]]
        text = "\n".join(["doorplate anchor 1", *(str(value) for value in values)])
        try:
            key = load_der_public_key(base64.b64decode(anchor["public_key"], validate=True))
            if not isinstance(key, Ed25519PublicKey):
                return False
            key.verify(base64.b64decode(anchor["signature"], validate=True), text.encode())
        except (ValueError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True

    return is_signed


def _month_at(month: str, distance: int) -> str:
    months = int(month[:4]) * 12 + int(month[5:]) - 1 + distance
    return f"{months // 12:04d}-{months % 12 + 1:02d}"
