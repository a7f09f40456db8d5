"""The file of results: a line for each finished address, so that a run that was stopped can be continued."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Callable, Mapping

from ..lookup_many import LookedUp
from .text import CommandError, csv_line, parse_csv_line

COLUMNS = (
    *("ip", "requests", "match_type", "company_found", "name", "website", "industry", "employees", "city"),
    *("country_code", "is_isp", "stale", "enriched_at", "error"),
)
HEADER = csv_line(COLUMNS)
# The only error that says something of the address itself.
FINAL_ERROR = "invalid_ip"


@dataclass(frozen=True)
class Row:
    """What a summary needs of a line."""

    ip: str
    name: str
    website: str


class CompaniesFile:
    """Continues ``path.part``, or else the finished file ``path``, or begins a new one.

    Lines go to ``path.part`` until ``finish``. force: a file of something else may be replaced. direct: lines are
    written to ``path`` itself, for a run without an end. Raise CommandError for a file that holds something else,
    before anything has been changed.
    """

    def __init__(self, path: str, *, force: bool = False, direct: bool = False) -> None:
        before = _lines_before(path, force)
        self._path = path
        self._target = path if direct else f"{path}.part"
        # Addresses that an earlier run has finished: with a result, or because they are none.
        self.finished = frozenset(map(_ip_of, before))
        replace_file(self._target, HEADER + "".join(f"{line}\n" for line in before))
        if direct and os.path.exists(f"{path}.part"):
            os.remove(f"{path}.part")
        # Without a buffer, a line is written as a whole, or not at all.
        self._file = open(self._target, "ab", buffering=0)

    def write(self, looked: LookedUp, requests: int) -> None:
        """Append the line of an address. requests: the lines of the logs with this address so far."""
        self._file.write(_encoded(_line_of(looked, requests)))

    def finish(self, requests: Mapping[str, int]) -> list[Row]:
        """Put the final counts of requests into the lines, give the file its name, and return all rows."""
        self.close()
        cells = [parse_csv_line(line) for line in _lines_in(_text_of(self._target))]
        for row in cells:
            row[1] = str(requests.get(row[0], row[1]))
        replace_file(self._target, HEADER + "".join(map(csv_line, cells)))
        os.replace(self._target, self._path)
        return [Row(row[0], row[4], row[5]) for row in cells]

    def close(self) -> None:
        """Leave what is written for the next run."""
        self._file.close()


def finished_before(path: str, force: bool = False) -> frozenset[str]:
    """Return the addresses that an earlier run has left in the file or beside it; changes nothing.

    Raise CommandError for a file that holds something else.
    """
    return frozenset(map(_ip_of, _lines_before(path, force)))


def files_of_results(path: str) -> tuple[str, ...]:
    """Return all the files that a run may write for its results, also for a moment."""
    return path, f"{path}.part", f"{path}.new", f"{path}.part.new"


def _lines_before(path: str, force: bool) -> list[str]:
    # Both are judged before either is written.
    part = _own_lines(f"{path}.part", force, HEADER.startswith)
    whole = _own_lines(path, force, lambda text: text == "")
    return part if part is not None else whole or []


def _own_lines(path: str, force: bool, is_empty: Callable[[str], bool]) -> list[str] | None:
    """Return the finished lines of an own file; None: there is none."""
    text = own_text(path, HEADER, force, is_empty)
    if text is None:
        return None
    return [line for line in _lines_in(text) if _error_of(line) in ("", FINAL_ERROR)]


def own_text(
    path: str, header: str, force: bool, is_empty: Callable[[str], bool] = lambda text: text == ""
) -> str | None:
    """Return the text of a file that this command has written; None: there is none, or it is replaced by force.

    header: which such a file begins with. Raise CommandError for a file of something else.
    """
    try:
        # A device would be replaced, and a pipe waited for.
        if os.path.exists(path) and not os.path.isfile(path):
            reason = "it is a folder" if os.path.isdir(path) else "it is not a regular file"
            raise CommandError(f"{path} cannot be written: {reason}")
        text = _text_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error
    if is_empty(text):
        return None
    if text.startswith(header):
        return text
    if force:
        return None
    raise CommandError(f"{path} is not a file of this command: name another, or replace it with --force")


def replace_file(path: str, text: str) -> None:
    """Written beside and renamed, so that the file is whole at any moment."""
    with open(f"{path}.new", "wb") as file:
        file.write(_encoded(text))
    os.replace(f"{path}.new", path)


def _text_of(path: str) -> str:
    with open(path, "rb") as file:
        return file.read().decode(errors="replace")


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _lines_in(text: str) -> list[str]:
    """Return the lines behind the header, without the half line of a run that was killed."""
    return text.split("\n")[1:-1]


def _ip_of(line: str) -> str:
    return parse_csv_line(line)[0]


def _error_of(line: str) -> str:
    cells = parse_csv_line(line)
    return cells[-1] if len(cells) == len(COLUMNS) else ""


def _line_of(looked: LookedUp, requests: int) -> str:
    ip, result, error = looked.ip, looked.result, looked.error
    if result is None:
        code = "" if error is None else error.code or error.kind
        return csv_line([ip, requests, *[None] * (len(COLUMNS) - 3), code])
    company = result["company"]
    named: list[str | int | None] = [None] * 6
    if company is not None:
        named = [
            *(company["name"], company["website"], company["industry"]),
            *(company["employees"], company["city"], company["country_code"]),
        ]
    return csv_line(
        [
            *(ip, requests, result["match_type"], result["company_found"], *named),
            *(result["network"]["is_isp"], result["stale"], result["enriched_at"], None),
        ]
    )
