"""The formats of logs: each is told by its own look, and finds the visitor's address and the time in a line."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Callable, Literal, Mapping, NamedTuple, Sequence, Union
from urllib.parse import unquote_plus

from .._addresses import address_in, is_local
from .text import CommandError, parse_csv_line

FORMATS = ("combined", "json", "alb", "w3c", "haproxy", "csv", "tsv")
FORMATS_WITH_FIELDS = ("json", "w3c", "csv", "tsv")
# Which address of a line is the visitor's: that of the connection, or that of X-Forwarded-For.
IpFrom = Literal["first", "last"]


@dataclass(frozen=True)
class FormatOptions:
    """format: a name of FORMATS; None: by its look. field: a JSON path with dots, or the name of a column."""

    format: str | None = None
    field: str | None = None
    ip_from: IpFrom | None = None


class Visit(NamedTuple):
    """ip: in its canonical spelling. at: milliseconds since 1970; None: the line has no time that can be read."""

    ip: str
    at: int | None


# What a line is: a visit, a header or comment of the format, or a line without an address.
Read = Union[Visit, Literal["header"], None]


@dataclass(frozen=True)
class Format:
    """name: for people, what the log was taken for."""

    name: str
    read: Callable[[str], Read]


ADDRESS_FIELDS = (
    *("ip", "remote_addr", "remote_ip", "client_ip", "clientip", "remoteip", "c-ip", "clienthost"),
    *("client", "source_ip", "ip_address", "ip address", "ipaddress", "host"),
)
# Caddy's come first: `client_ip` is the visitor behind its trusted proxies.
ADDRESS_PATHS = ("request.client_ip", "request.remote_ip", *ADDRESS_FIELDS)
TIME_FIELDS = (
    *("time_iso8601", "@timestamp", "timestamp", "startutc", "time", "ts", "msec", "datetime", "date"),
    "time_local",
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NUMBER = re.compile(r"[0-9]{9,13}(?:\.[0-9]+)?")
_ZONE = r"(?:\s*(Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?"
_LOG_TIME = re.compile(
    r"([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?: ([+-][0-9]{4}))?"
)
_ISO_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T \t]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?" + _ZONE + ")?"
)
_WITH_PORT = re.compile(r"(?:\[[0-9a-f:.]+\]|[0-9.]+):[0-9]+", re.IGNORECASE)
_BEFORE_TIME = re.compile(r"(?<!,)\s+")
_LAST_QUOTED = re.compile(r'"([^"]*)"\s*\Z')
_ALB = re.compile(r"(?:https?|h2|wss?|grpcs?) (\S+) \S+ (\S+) ")
# An address may be IPv6 without brackets: the port is what follows the last colon.
_HAPROXY = re.compile(
    r"(?:^|\s)(\S+):[0-9]+ (\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:.]+(?: [+-][0-9]{4})?\])"
)
_FIELDS = re.compile(r"#Fields:\s*(.*)", re.IGNORECASE)
_LIST = re.compile(r"\S+(?:, \S+)+ ")


def time_in(value: object) -> int | None:
    """Return the milliseconds since 1970 of a text of the usual forms, or of a number of seconds since then.

    A number may count milliseconds, microseconds or nanoseconds as well. A time without a zone is UTC.
    """
    if isinstance(value, str):
        log = _LOG_TIME.search(value)
        return _ms_of_text(log[0] if log else value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _ms_of_number(value)
    return None


# The lines of one second repeat it.
@lru_cache(1_024)
def _ms_of_text(value: str) -> int | None:
    if _NUMBER.fullmatch(value):
        return _ms_of_number(float(value))
    log = _LOG_TIME.fullmatch(value)
    if log:
        month = MONTHS.index(log[2]) + 1 if log[2] in MONTHS else 0
        return _ms((int(log[3]), month, int(log[1]), int(log[4]), int(log[5]), int(log[6])), "", log[7])
    iso = _ISO_TIME.fullmatch(value.strip())
    if not iso:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in iso.groups()[:6])
    return _ms((year, month, day, hour, minute, second), iso[7] or "", iso[8])


def _ms_of_number(number: int | float) -> int | None:
    if not 0 < number < 1e20:
        return None
    for limit, factor in ((1e11, 1_000.0), (1e14, 1.0), (1e17, 1e-3)):
        if number < limit:
            return math.floor(number * factor + 0.5)
    return math.floor(number * 1e-6 + 0.5)


def _ms(parts: tuple[int, int, int, int, int, int], fraction: str, zone: str | None) -> int | None:
    """Return the milliseconds since 1970 of a year, month, day, hour, minute and second. fraction: of a second."""
    try:
        since = datetime(*parts, tzinfo=timezone.utc) - _EPOCH
    except ValueError:
        return None
    if zone and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        since = since - offset if zone[0] == "+" else since + offset
    return since // timedelta(milliseconds=1) + int(fraction[:3].ljust(3, "0"))


def _visit(ip: str | None, time: object) -> Visit | None:
    return None if ip is None else Visit(ip, time_in(time))


def _first_address(values: Sequence[object]) -> str | None:
    return next((ip for ip in map(address_in, values) if ip is not None), None)


def _visitor(own: str | None, forwarded: str | None, ip_from: IpFrom | None) -> str | None:
    """Return the address of the connection, or that which a proxy names; by default the first that is public."""
    is_forwarded = ip_from == "last" or (ip_from is None and (own is None or is_local(own)))
    return (forwarded if is_forwarded else None) or own


def _combined(ip_from: IpFrom | None) -> Format:
    """Common, combined, with a virtual host before it, and nginx's with X-Forwarded-For at either end."""

    def read(line: str) -> Read:
        # A list of forwarded addresses may stand where the address does.
        words = _BEFORE_TIME.split(line.split(" [", 1)[0], maxsplit=2)[:2]
        # A virtual host without a name is the server's address and port, before the visitor's address.
        own = _first_address(words[::-1] if _WITH_PORT.fullmatch(words[0]) else words)
        quoted = _LAST_QUOTED.search(line)
        forwarded = address_in(quoted[1]) if quoted else None
        return _visit(_visitor(own, forwarded, ip_from), line)

    return Format("common or combined (Apache, nginx)", read)


def _parsed(line: str) -> dict[str, Any] | None:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(line, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _value_at(value: object, path: str) -> object:
    """Return the value of a name, or at a path whose parts are separated by dots; None: there is none."""
    if isinstance(value, list):
        value = {str(index): one for index, one in enumerate(value)}
    if not isinstance(value, dict):
        return None
    if path in value:
        return value[path]
    first, dot, rest = path.partition(".")
    return _value_at(value.get(first), rest) if dot else None


def _json(field: str | None) -> Format:
    def read(line: str) -> Read:
        found = _parsed(line)
        if found is None:
            return None
        insensitive = {name.lower(): value for name, value in found.items()}
        if field is None:
            ip = _first_address([_value_at(insensitive, path) for path in ADDRESS_PATHS])
        else:
            value = _value_at(found, field)
            # Caddy writes each header as an array.
            if isinstance(value, list):
                value = ",".join(one for one in value if isinstance(one, str))
            ip = address_in(value)
        times = (insensitive.get(name) for name in TIME_FIELDS)
        return _visit(ip, next((value for value in times if time_in(value) is not None), None))

    return Format("JSON lines", read)


def _alb() -> Format:
    def read(line: str) -> Read:
        match = _ALB.match(line)
        return _visit(address_in(match[2]), match[1]) if match else None

    return Format("AWS Application Load Balancer", read)


def _haproxy() -> Format:
    def read(line: str) -> Read:
        match = _HAPROXY.search(line)
        return _visit(address_in(match[1]), match[2]) if match else None

    return Format("HAProxy", read)


def _w3c(field: str | None, ip_from: IpFrom | None) -> Format:
    """IIS and CloudFront: comments begin with #, and ``#Fields:`` names the columns, anew wherever it stands."""
    columns: Mapping[str, int] = {}

    def read(line: str) -> Read:
        nonlocal columns
        if line.startswith("#"):
            fields = _FIELDS.match(line)
            if fields:
                names = fields[1].lower().split()
                columns = {name: index for index, name in reversed([*enumerate(names)])}
            return "header"
        cells = line.split("\t") if "\t" in line else line.split(" ")

        def cell(name: str) -> str | None:
            index = columns.get(name, len(cells))
            return cells[index] if index < len(cells) else None

        def address(name: str) -> str | None:
            # In a list, IIS writes a blank as +, CloudFront as %20.
            text = cell(name)
            return address_in(unquote_plus(text)) if text else None

        if field is None:
            ip = _visitor(address("c-ip"), address("x-forwarded-for") or address("cs(x-forwarded-for)"), ip_from)
        else:
            ip = address(field.lower())
        return _visit(ip, f"{cell('date') or ''} {cell('time') or ''}")

    return Format("W3C extended (IIS, CloudFront)", read)


def _separated(separator: Literal[",", "\t"], field: str | None) -> Format:
    """With a header, or without one if a column of the first line holds an address."""
    columns: tuple[int, int | None] | None = None
    wanted = ADDRESS_FIELDS if field is None else (field.lower(),)

    def read(line: str) -> Read:
        nonlocal columns
        cells = parse_csv_line(line) if separator == "," else line.split("\t")
        if columns is None:
            names = [cell.strip().lower() for cell in cells]

            def index_of(all_wanted: Sequence[str]) -> int | None:
                return next((names.index(name) for name in all_wanted if name in names), None)

            ip = index_of(wanted)
            if ip is not None:
                columns = (ip, index_of(TIME_FIELDS))
                return "header"
            if field is not None:
                raise CommandError(f"the first line has no column {field}")
            columns = (next((index for index, cell in enumerate(cells) if address_in(cell)), 0), None)
        address, time = (cells[at] if at is not None and at < len(cells) else None for at in columns)
        return _visit(address_in(address), time)

    return Format("CSV" if separator == "," else "TSV", read)


def format_of(name: str, options: FormatOptions = FormatOptions()) -> Format:
    """Make a format by its name, one of FORMATS. It reads one log: some formats remember the log's header."""
    makers: Mapping[str, Callable[[], Format]] = {
        "combined": lambda: _combined(options.ip_from),
        "json": lambda: _json(options.field),
        "alb": _alb,
        "w3c": lambda: _w3c(options.field, options.ip_from),
        "haproxy": _haproxy,
        "csv": lambda: _separated(",", options.field),
        "tsv": lambda: _separated("\t", options.field),
    }
    return makers[name]()


def detect_format(sample: Sequence[str], field: str | None = None) -> str:
    """Tell a format by the first lines of a log. sample: lines that are not empty. field: of the options."""
    first = sample[0] if sample else ""
    by_tab, by_comma = first.split("\t"), parse_csv_line(first)

    def most(is_one: Callable[[str], object]) -> bool:
        return sum(1 for line in sample if is_one(line)) * 2 > len(sample)

    def has_column(cells: Sequence[str]) -> bool:
        return len(cells) > 1 and any(
            cell.strip().lower() in ADDRESS_FIELDS or address_in(cell) is not None for cell in cells
        )

    def names_field(cells: Sequence[str]) -> bool:
        return field is not None and field.lower() in (cell.strip().lower() for cell in cells)

    if len(by_tab) > 1 and names_field(by_tab):
        return "tsv"
    if names_field(by_comma):
        return "csv"
    if any(_FIELDS.match(line) for line in sample):
        return "w3c"
    if most(lambda line: line.startswith("{") and _parsed(line) is not None):
        return "json"
    if most(_ALB.match):
        return "alb"
    if most(_HAPROXY.search):
        return "haproxy"
    if "[" not in first and has_column(by_tab):
        return "tsv"
    if "[" not in first and not _LIST.match(first) and has_column(by_comma):
        return "csv"
    return "csv" if len(by_comma) == 1 and by_comma[0].strip().lower() in ADDRESS_FIELDS else "combined"
