"""``doorplate-client enrich``: the companies behind the addresses of logs."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Iterable, Iterator, Sequence, TextIO

from .._addresses import is_local
from ..client import Client
from ..lookup_many import LookedUp
from ..types import Usage
from .companies_file import CompaniesFile, files_of_results, finished_before
from .formats import FORMATS, FormatOptions
from .progress import ProgressLine
from .read_log import STANDARD_INPUT, Log, check_readable, log_paths, open_log
from .summary import Visits, check_summary, is_summary, write_summary
from .text import CommandError, duration, shown


@dataclass(frozen=True)
class EnrichOptions:
    """logs: files and folders; ``-`` is the standard input. summary: a file for the visits of each company.

    force: replaces a file of something else. verbose: shows each line without an address.
    """

    logs: Sequence[str]
    out: str
    formats: FormatOptions = FormatOptions()
    force: bool = False
    summary: str | None = None
    dry_run: bool = False
    follow: bool = False
    verbose: bool = False
    concurrency: int = 8


@dataclass
class _Reading:
    """What was read so far. visits: by public address."""

    lines: int = 0
    without: int = 0
    not_public: int = 0
    visits: dict[str, Visits] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.lines} lines, {self.not_public} with addresses that are not public, {self.without} without one"
        )


class _Counts(Counter[str]):
    """Results by kind: a match type of the service, also one that is not shown yet, ``invalid`` or ``failed``."""

    def add(self, looked: LookedUp) -> None:
        kind: str = "invalid" if _is_invalid(looked) else "failed"
        if looked.result is not None:
            kind = looked.result["match_type"]
        self[kind] += 1

    def __str__(self) -> str:
        return (
            f"{self['company']} companies, {self['isp']} networks of providers, {self['unclassified']} unclassified, "
            f"{self['invalid']} that no lookup takes, {self['failed']} failed"
        )


def enrich(options: EnrichOptions, client: Client, terminal: TextIO) -> bool:
    """Look up each address of logs once, and write a line of CSV for each.

    Return whether the run came to its end; KeyboardInterrupt stops the lookups, and the same options continue them.
    That is the end of a run that follows a log. Raise CommandError where addresses failed, and CommandError,
    DoorplateError or OSError for what else ended it.
    """
    results = files_of_results(options.out)
    # Another file of that name in a folder is a log, and stays one.
    summary = [options.summary] if options.summary is not None and is_summary(options.summary) else []
    paths = log_paths(options.logs, (*results, *summary))
    if options.follow and (len(paths) > 1 or paths[0] == STANDARD_INPUT):
        raise CommandError("--follow takes one file")
    if options.follow:
        check_readable(paths[0])
    before = finished_before(options.out, options.force)
    if options.summary is not None:
        check_summary(options.summary, (*results, *(path for path in paths if path != STANDARD_INPUT)), options.force)
    reading = _Reading()
    stop = threading.Event()
    # What may have no end is looked up while it is read.
    is_endless = options.follow or STANDARD_INPUT in paths
    addresses = _addresses_of(paths, options, reading, terminal, stop)
    if not is_endless:
        for _ in addresses:
            pass
    said = _estimate(client.usage(), reading, before, is_endless, options.concurrency)
    terminal.write(f"{said}\n")
    terminal.flush()
    if options.dry_run:
        return True

    file = CompaniesFile(options.out, force=options.force, direct=options.follow)
    to_look_up = addresses if is_endless else list(reading.visits)
    try:
        is_done, failed = _look_up_all(to_look_up, file, reading, client, terminal, options)
    finally:
        stop.set()
        file.close()
    stopped = "Stopped: the same command goes on from here. The results so far are in"
    if not is_done and not options.follow:
        terminal.write(f"{reading}.\n{stopped} {options.out}.part.\n")
        return False
    # A copy, since the thread that follows a log may still add to it.
    rows = file.finish({ip: visits.requests for ip, visits in list(reading.visits.items())})
    terminal.write(f"{reading}.\n{stopped if options.follow else 'The results are in'} {options.out}.\n")
    if options.summary is not None:
        write_summary(options.summary, rows, reading.visits)
    if failed > 0:
        which, again = ("address", "it") if failed == 1 else ("addresses", "them")
        raise CommandError(f"{failed} {which} failed: the same command tries {again} again")
    return True


def _addresses_of(
    paths: Iterable[str], options: EnrichOptions, reading: _Reading, terminal: TextIO, stop: threading.Event
) -> Iterator[str]:
    """Read logs into ``reading`` and yield each public address once.

    stop: ends the reading. Raise CommandError for a log in which no line has an address.
    """
    for path in paths:
        log = open_log(path, options.formats, stop if options.follow else None)
        if stop.is_set():
            return
        terminal.write(f"{path}: {log.format.name}\n")
        found = 0
        for line in log.lines:
            if stop.is_set():
                return
            read = line.read
            if read == "header":
                continue
            reading.lines += 1
            if read is None:
                reading.without += 1
                if options.verbose:
                    terminal.write(f"no address: {shown(line.text)}\n")
                continue
            found += 1
            if is_local(read.ip):
                reading.not_public += 1
                continue
            is_new = read.ip not in reading.visits
            reading.visits.setdefault(read.ip, Visits()).add(Visits(1, read.at, read.at))
            if is_new:
                yield read.ip
        if found == 0 and not options.follow:
            raise _nothing_in(log)


def _nothing_in(log: Log) -> CommandError:
    if log.first_line == "":
        return CommandError(f"{log.path} is empty")
    return CommandError(
        f"{log.path}: no line has an address when it is read as {log.format.name} "
        f"(--format: {', '.join(FORMATS)}); it begins: {shown(log.first_line)}"
    )


def _estimate(
    usage: Usage, reading: _Reading, before: frozenset[str], is_endless: bool, concurrency: int
) -> str:
    """Return what the run will ask for, before it spends anything."""
    rate = usage["limits"]["requests_per_second"]
    daily = usage["limits"]["new_enrichments_per_day"]
    left = None if daily is None else max(0, daily - usage["outcomes"].get("enqueued", 0))
    if daily is None:
        allowance = "the key has no daily limit of new addresses"
    elif daily == 0:
        allowance = "the key looks up saved addresses alone"
    elif left == 0:
        allowance = f"the key's {daily} new addresses of today are used up"
    else:
        allowance = f"the key takes {left} of {daily} new addresses today"
    if is_endless:
        return f"unknown how many addresses and how long; {allowance}"
    finished = sum(1 for ip in reading.visits if ip in before)
    todo = len(reading.visits) - finished
    fastest = todo / min(rate, concurrency * 100)
    if todo == 0:
        longest = ""
    elif daily == 0:
        longest = ", and new ones fail"
    elif daily and left is not None and todo > left:
        longest = f", or {math.ceil((todo - left) / daily)} more days if all are new"
    else:
        longest = ", and longer for new ones"
    return (
        f"{reading.lines} lines, {len(reading.visits)} addresses, {finished} finished before, {todo} to look up; "
        f"{allowance}; at least {duration(fastest)} if all are saved{longest}"
    )


def _look_up_all(
    addresses: Iterable[str],
    file: CompaniesFile,
    reading: _Reading,
    client: Client,
    terminal: TextIO,
    options: EnrichOptions,
) -> tuple[bool, int]:
    """Return whether it came to its end, and how many addresses failed.

    Raise DoorplateError for a refusal that says nothing of the address.
    """
    counts = _Counts()
    end = "; "
    many = client.lookup_many(addresses, concurrency=options.concurrency, skip=file.finished)
    try:
        with many, ProgressLine(lambda: many.progress, terminal):
            for looked in many:
                error = looked.error
                if error and not _is_invalid(looked) and error.outcome == "refused" and error.status != 429:
                    raise error
                visits = reading.visits.get(looked.ip)
                file.write(looked, visits.requests if visits else 0)
                counts.add(looked)
        is_done = True
    except KeyboardInterrupt:
        is_done = False
    except BaseException:
        # What ended it stands in a line of its own.
        end = ".\n"
        raise
    finally:
        terminal.write(f"{counts}{end}")
    return is_done, counts["failed"]


def _is_invalid(looked: LookedUp) -> bool:
    return looked.error is not None and looked.error.code == "invalid_ip"
