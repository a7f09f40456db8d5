"""Text for files and terminals: lines of CSV, durations, and text of others without control characters."""

from __future__ import annotations

import math
import re
from typing import Iterable

# Longer lines of a log are cut where they are shown.
SHOWN_CHARACTERS = 200

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class CommandError(Exception):
    """What ends the command, said in one line."""


def csv_line(cells: Iterable[str | int | float | bool | None]) -> str:
    """Return a line of CSV (RFC 4180) with its line break, without line breaks within cells.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    return ",".join(_cell(_plain(cell)) for cell in cells) + "\n"


def parse_csv_line(line: str) -> list[str]:
    """Return the cells of a line of CSV."""
    if '"' not in line:
        return line.split(",")
    cells: list[str] = []
    cell = ""
    quoted = False
    at = 0
    while at < len(line):
        letter = line[at]
        if quoted and letter == '"' and line[at + 1 : at + 2] == '"':
            cell += '"'
            at += 1
        elif letter == '"':
            quoted = not quoted
        elif letter == "," and not quoted:
            cells.append(cell)
            cell = ""
        else:
            cell += letter
        at += 1
    return [*cells, cell]


def without_controls(text: str) -> str:
    """Replace control characters, which could drive a terminal, by blanks."""
    return _CONTROLS.sub(" ", text)


def shown(text: str) -> str:
    """Return the beginning of a line of a log, for a terminal."""
    return without_controls(text[:SHOWN_CHARACTERS] + "…" if len(text) > SHOWN_CHARACTERS else text)


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it, rounded up."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    if seconds < 5_400:
        return f"{math.ceil(seconds / 60)} min"
    return f"{seconds / 3_600:.1f} h"


def _plain(value: str | int | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _cell(text: str) -> str:
    plain = without_controls(text)
    if plain.startswith(("=", "+", "-", "@")):
        plain = f"'{plain}"
    return '"' + plain.replace('"', '""') + '"' if '"' in plain or "," in plain else plain
