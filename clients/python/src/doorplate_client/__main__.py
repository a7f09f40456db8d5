"""The command ``python -m doorplate_client``, also ``doorplate-client``.

It exits with 0, 1 (failed, also for an address), 2 (wrong usage) or 130 (stopped).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType
from typing import NoReturn, Sequence

from .cli.enrich import EnrichOptions, enrich
from .cli.formats import FORMATS, FormatOptions
from .cli.text import without_controls
from .client import Client

HELP = f"""doorplate-client enrich LOG… --out FILE [options]

Looks up each address of logs once and writes a line of CSV for each. A LOG is a file, a folder of files, or - for the
standard input; gzip, zstd (Python 3.14 or later) and UTF-16 are recognised, and so is the format. Results go to
FILE.part, which gets its name at the end. Stop it with Ctrl-C; the same command goes on where it was stopped, takes up
a finished FILE, and tries addresses again that failed. It exits with 0, 1 (failed, also where an address did), 2 (wrong
usage) or 130 (stopped).

  --format      {", ".join(FORMATS)}; by default what the first lines look like
  --field       the address's path in JSON objects, as request.remote_ip, or its column in CSV, TSV or W3C
  --ip-from     first: the line's own address; last: the X-Forwarded-For at its end, or in a column of W3C; by default the
                last where the first is not public
  --out         the file that is written, and continued
  --summary     a file of the visits of each company, replaced by each run
  --force       replaces a FILE, or a summary, that holds something else
  --dry-run     says how many addresses there are, what the key allows and how long it takes, and ends
  --follow      goes on with what is appended to LOG, also when it is rotated; writes to FILE directly
  --verbose     shows each line without an address
  --concurrency requests under way at once; 8 by default
  --url         of the service; by default DOORPLATE_URL

The key is read from DOORPLATE_API_KEY, so that it stands in no list of processes.
"""
FAILED = 1
WRONG_USAGE = 2
STOPPED = 130


class _WrongUsage(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _WrongUsage(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. arguments: by default those of the process."""
    try:
        return _run(_parser().parse_intermixed_args(arguments))
    except _WrongUsage as error:
        sys.stderr.write(f"doorplate-client: {error}\n\n{HELP}")
        return WRONG_USAGE
    except KeyboardInterrupt:
        sys.stderr.write("doorplate-client: stopped\n")
        return STOPPED
    except Exception as error:
        sys.stderr.write(f"doorplate-client: {without_controls(_said(error))}\n")
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    for option in ("--format", "--field", "--ip-from", "--out", "--summary", "--concurrency", "--url"):
        parser.add_argument(option)
    for flag in ("--force", "--dry-run", "--follow", "--verbose", "--help"):
        parser.add_argument(flag, action="store_true")
    return parser


def _run(given: argparse.Namespace) -> int:
    if given.help:
        sys.stdout.write(HELP)
        return 0
    command, logs = (given.words or [None])[0], given.words[1:]
    if command != "enrich" or not logs:
        raise _WrongUsage("enrich and a log are needed")
    if given.format not in (None, *FORMATS):
        raise _WrongUsage(f"--format is none of {', '.join(FORMATS)}: {given.format}")
    if given.ip_from not in (None, "first", "last"):
        raise _WrongUsage(f"--ip-from is neither first nor last: {given.ip_from}")
    if given.out is None:
        raise _WrongUsage("--out is missing")
    concurrency = 8 if given.concurrency is None else _number(given.concurrency)
    url = given.url or os.environ.get("DOORPLATE_URL")
    api_key = os.environ.get("DOORPLATE_API_KEY")
    if url is None:
        raise _WrongUsage("--url or DOORPLATE_URL is missing")
    if api_key is None:
        raise _WrongUsage("DOORPLATE_API_KEY is missing")
    options = EnrichOptions(
        logs=logs,
        out=given.out,
        formats=FormatOptions(given.format, given.field, given.ip_from),
        force=given.force,
        summary=given.summary,
        dry_run=given.dry_run,
        follow=given.follow,
        verbose=given.verbose,
        concurrency=concurrency,
    )
    client = Client(url, api_key)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    return 0 if enrich(options, client, sys.stderr) else STOPPED


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise _WrongUsage("--concurrency must be 1 or more")
    return int(text)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    # A second signal ends the process at once.
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
