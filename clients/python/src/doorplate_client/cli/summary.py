"""The file of the visits of each company, in which a run sums up what it has read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Callable, Iterable, Mapping

from .companies_file import Row, own_text, replace_file
from .text import CommandError, csv_line

HEADER = csv_line(["name", "website", "visits", "addresses", "first", "last"])

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass
class Visits:
    """Times in milliseconds since 1970; None: unknown."""

    requests: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, other: Visits) -> None:
        self.requests += other.requests
        self.first = _bound(min, self.first, other.first)
        self.last = _bound(max, self.last, other.last)


def check_summary(path: str, others: Iterable[str], force: bool) -> None:
    """Raise CommandError if a summary cannot be written here; changes nothing.

    others: the logs, and the files of the results. force: a file of something else may be replaced.
    """
    taken = set(map(os.path.realpath, others))
    if not taken.isdisjoint(map(os.path.realpath, files_of_summary(path))):
        raise CommandError(f"{path} is a log or a file of the results: name another for the summary")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise CommandError(f"{path} cannot be written: there is no folder {folder}")
    own_text(path, HEADER, force)


def is_summary(path: str) -> bool:
    """Return whether an earlier run has written the file, or nobody has yet."""
    try:
        own_text(path, HEADER, force=False)
    except CommandError:
        return False
    return True


def files_of_summary(path: str) -> tuple[str, ...]:
    """Return all the files that writing a summary makes, also for a moment."""
    return path, f"{path}.new"


def write_summary(path: str, rows: Iterable[Row], visits: Mapping[str, Visits]) -> None:
    """Write the visits of each company, the most first."""
    companies: dict[tuple[str, str], tuple[list[str], Visits]] = {}
    for row in rows:
        own = visits.get(row.ip)
        if row.name == "" or own is None:
            continue
        addresses, all_visits = companies.setdefault((row.name, row.website), ([], Visits()))
        addresses.append(row.ip)
        all_visits.add(own)
    lines = [
        csv_line([name, website, all_visits.requests, len(addresses), _iso(all_visits.first), _iso(all_visits.last)])
        for (name, website), (addresses, all_visits) in sorted(
            companies.items(), key=lambda one: (-one[1][1].requests, one[0][0])
        )
    ]
    replace_file(path, HEADER + "".join(lines))


def _bound(of: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else of(one, other)


def _iso(ms: int | None) -> str | None:
    if ms is None:
        return None
    return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
