"""Reads logs line by line: files, folders and the standard input, packed or not, in any of the usual encodings."""

from __future__ import annotations

import codecs
import importlib
import itertools
import os
import platform
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterable, Iterator, NamedTuple, Sequence, cast

from .formats import FORMATS_WITH_FIELDS, Format, FormatOptions, Read, Visit, detect_format, format_of
from .text import CommandError

STANDARD_INPUT = "-"
SAMPLE_LINES = 50
FOLLOW_SECONDS = 0.5
# After a rotation by renaming, the writer goes on with the old file until it is told of it.
QUIET_SECONDS_OF_ROTATED = 5.0
CHUNK_BYTES = 65_536
# Packed bytes at once: each may become a thousand bytes of text.
PACKED_CHUNK_BYTES = 16_384

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class LogLine(NamedTuple):
    text: str
    read: Read


@dataclass(frozen=True)
class Log:
    """path: ``-`` is the standard input. first_line: empty for an empty log. lines: can be read once."""

    path: str
    format: Format
    first_line: str
    lines: Iterator[LogLine]


def log_paths(named: Iterable[str], written: Iterable[str] = ()) -> list[str]:
    """Return the files in folders, sorted, and what else is named. Raise CommandError for a folder without a file.

    written: files of this command, which are no logs of a folder.
    """
    left_out = set(map(os.path.realpath, written))
    paths: list[str] = []
    for path in named:
        if path == STANDARD_INPUT or not os.path.isdir(path):
            paths.append(path)
            continue
        # A dangling link is no file.
        files = sorted(
            str(one) for one in Path(path).rglob("*") if one.is_file() and os.path.realpath(one) not in left_out
        )
        if not files:
            raise CommandError(f"{path} is a folder without a file")
        paths.extend(files)
    return paths


def open_log(path: str, options: FormatOptions, stop_following: threading.Event | None = None) -> Log:
    """Open a log and tell its format by its first lines.

    stop_following: if given, the log goes on with what is appended, also to the file that replaces a rotated one, until
    the event is set. Raise CommandError for a file that cannot be read, and for a field where the format has none.
    """
    texts = _lines_of(path) if stop_following is None else _followed(path, stop_following)
    sample = _sample(texts, options, stop_following is not None or path == STANDARD_INPUT)
    name = options.format or detect_format(sample, options.field)
    if sample and options.field is not None and name not in FORMATS_WITH_FIELDS:
        which = ", ".join(FORMATS_WITH_FIELDS)
        raise CommandError(f"{path}: --field is for {which} alone, and the log is read as {name} (--format)")
    log_format = format_of(name, options)
    lines = (LogLine(text, log_format.read(text)) for text in itertools.chain(sample, texts))
    return Log(path, log_format, sample[0] if sample else "", lines)


def check_readable(path: str) -> None:
    """Raise CommandError for a file that cannot be opened."""
    try:
        _open(path).close()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {_reason(error)}") from error


def _sample(texts: Iterator[str], options: FormatOptions, is_live: bool) -> list[str]:
    """Return the lines that tell the format. is_live: one address is enough, since the next line may take hours."""
    sample: list[str] = []
    for text in itertools.islice(texts, SAMPLE_LINES):
        sample.append(text)
        if is_live and _has_visit(sample, options):
            break
    return sample


def _has_visit(sample: Sequence[str], options: FormatOptions) -> bool:
    log_format = format_of(options.format or detect_format(sample, options.field), options)
    return any(isinstance(log_format.read(text), Visit) for text in sample)


def _lines_of(path: str) -> Iterator[str]:
    """Yield the lines that are not empty."""
    try:
        with _open(path) as file:
            yield from _split(_decoded(_unpacked(file)))
    except (OSError, EOFError, _Unreadable, zlib.error) as error:
        name = "the standard input" if path == STANDARD_INPUT else path
        raise CommandError(f"{name} cannot be read: {_reason(error)}") from error


class _Unreadable(Exception):
    pass


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    if isinstance(error, EOFError):
        return "it is packed and ends too early"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _open(path: str) -> BinaryIO:
    # Without a buffer: a thread that waits for the standard input would hold the buffer's lock at the process's end.
    if path == STANDARD_INPUT:
        return cast(BinaryIO, open(0, "rb", buffering=0, closefd=False))
    return cast(BinaryIO, open(path, "rb", buffering=0))


def _split(texts: Iterable[str]) -> Iterator[str]:
    pending = ""
    for text in texts:
        *lines, pending = (pending + text).split("\n")
        for line in lines:
            if line and not line.isspace():
                yield line.removesuffix("\r")
    if pending.strip():
        yield pending.removesuffix("\r")


def _unpacked(file: BinaryIO) -> Iterator[bytes]:
    """Unpack by the first bytes, whatever the name."""
    head = _head(iter(lambda: file.read(PACKED_CHUNK_BYTES), b""), 4)
    packed = itertools.chain([head], iter(lambda: file.read(PACKED_CHUNK_BYTES), b""))
    if head.startswith(GZIP_MAGIC):
        return _unpack(packed, GZIP_MAGIC, lambda: zlib.decompressobj(wbits=zlib.MAX_WBITS | 16))
    if head.startswith(ZSTD_MAGIC):
        return _unpack(packed, ZSTD_MAGIC, _zstd())
    return itertools.chain([head], iter(lambda: file.read(CHUNK_BYTES), b""))


def _zstd() -> Callable[[], Any]:
    try:
        module = importlib.import_module("compression.zstd")
    except ImportError:
        version = platform.python_version()
        raise _Unreadable(f"Python {version} cannot unpack zstd, which Python 3.14 or later can") from None
    return cast("Callable[[], Any]", module.ZstdDecompressor)


def _unpack(packed: Iterable[bytes], magic: bytes, begin: Callable[[], Any]) -> Iterator[bytes]:
    """Unpack members one after another. What follows them and is none is left out, as gzip does.

    begin: makes a decompressor of one member, as of zlib or zstd. Raise EOFError for a member that does not end.
    """
    member: Any = None
    for chunk in packed:
        while chunk:
            if member is None:
                if not magic.startswith(chunk[: len(magic)]):
                    return
                member = begin()
            try:
                yield member.decompress(chunk)
            except Exception as error:
                # zlib says its number first, zstd the reason alone.
                raise _Unreadable(str(error).rpartition(": ")[2]) from error
            chunk = member.unused_data if member.eof else b""
            if member.eof:
                member = None
    if member is not None:
        raise EOFError


def _decoded(chunks: Iterator[bytes]) -> Iterator[str]:
    """Decode UTF-8 or, by its mark, UTF-16; without the mark."""
    head = _head(chunks, 2)
    if head.startswith(codecs.BOM_UTF16_LE):
        encoding = "utf-16-le"
    elif head.startswith(codecs.BOM_UTF16_BE):
        encoding = "utf-16-be"
    else:
        encoding = "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    is_first = True
    for chunk in itertools.chain([head], chunks, [None]):
        text = decoder.decode(chunk or b"", final=chunk is None)
        if is_first and text:
            text = text.removeprefix("\ufeff")
            is_first = False
        yield text


def _head(chunks: Iterator[bytes], count: int) -> bytes:
    """Return the first chunks, of at least so many bytes where there are as many."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= count:
            break
    return head


def _followed(path: str, stop: threading.Event) -> Iterator[str]:
    """Yield the lines of a growing file. Read from the start again when the file is replaced or truncated."""
    while not stop.is_set():
        try:
            file = _open(path)
        except FileNotFoundError:
            # It is between the two steps of its rotation.
            stop.wait(FOLLOW_SECONDS)
            continue
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {_reason(error)}") from error
        with file:
            yield from _split(_decoded(_growing(file, path, stop)))


def _growing(file: BinaryIO, path: str, stop: threading.Event) -> Iterator[bytes]:
    """Yield what is appended to a file, until it is cut, or replaced and quiet."""
    inode = os.fstat(file.fileno()).st_ino
    position = 0
    quiet_seconds = 0.0
    while not stop.is_set():
        chunk = file.read(CHUNK_BYTES)
        if chunk:
            position += len(chunk)
            quiet_seconds = 0.0
            yield chunk
            continue
        now = _inode_and_size(path)
        if now is not None and now[0] != inode:
            if quiet_seconds >= QUIET_SECONDS_OF_ROTATED:
                return
            quiet_seconds += FOLLOW_SECONDS
        elif now is not None and now[1] < position:
            return
        stop.wait(FOLLOW_SECONDS)


def _inode_and_size(path: str) -> tuple[int, int] | None:
    try:
        now = os.stat(path)
    except OSError:
        return None
    return now.st_ino, now.st_size
