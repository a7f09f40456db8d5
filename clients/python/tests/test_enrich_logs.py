import gzip
import json
import tempfile
import threading
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Callable

from doorplate_client._addresses import canonical_address, is_local
from doorplate_client.cli.formats import FormatOptions, Visit, detect_format, time_in
from doorplate_client.cli.progress import progress_text
from doorplate_client.cli.read_log import log_paths, open_log
from doorplate_client.cli.text import CommandError, csv_line, parse_csv_line
from doorplate_client.lookup_many import LookupProgress, Waiting

# The clients of all languages read the same logs.
LOGS = Path(__file__).resolve().parents[3] / "test" / "clients" / "logs"
DAY = (time_in("2026-11-27T16:10:00Z"), time_in("2026-11-27T16:20:00Z"))


class Scripted(threading.Event):
    """A stop event on which each wait of a reader is one step of a test; it is set after the last one."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = list(steps)

    def wait(self, timeout: float | None = None) -> bool:
        if self.steps:
            self.steps.pop(0)()
        else:
            self.set()
        return self.is_set()


class LogTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, content: str | bytes) -> str:
        path = self.folder / f"log-{len([*self.folder.iterdir()])}"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def counted(self, path: str, **options: Any) -> tuple[dict[str, int], int, int]:
        """Requests by address, lines without one, and lines with a time of the shared logs' ten minutes."""
        requests: Counter[str] = Counter()
        without = times = 0
        for line in open_log(path, FormatOptions(**options)).lines:
            if line.read is None:
                without += 1
            elif line.read != "header":
                requests[line.read.ip] += 1
                times += line.read.at is not None and DAY[0] <= line.read.at < DAY[1]
        return dict(requests), without, times

    def addresses(self, content: str | bytes, **options: Any) -> dict[str, int]:
        return self.counted(self.file(content), **options)[0]

    def test_tells_each_shared_log_by_its_look_and_reads_it(self) -> None:
        expected = json.loads((LOGS / "expected.json").read_text())
        self.assertGreater(len(expected), 10)
        visits = dict.fromkeys(("8.8.8.8", "9.20.1.1", "2001:4860:4860::8888", "10.0.0.7", "9.20.1.2"), 3)
        for name, told in expected.items():
            with self.subTest(name):
                text = (LOGS / name).read_bytes().decode("utf-16" if name.startswith("utf16") else "utf-8-sig")
                sample = [line for line in text.splitlines() if line][:50]
                self.assertEqual(detect_format(sample), told["format"])
                counted = self.counted(str(LOGS / name))
                self.assertEqual(counted, (visits, told["without"], told["times"]))

    def test_takes_the_forwarded_address_where_the_own_is_not_public_or_as_asked(self) -> None:
        def line(own: str, forwarded: str) -> str:
            return f'{own} - - [27/Nov/2026:16:18:16 +0000] "GET / HTTP/1.1" 200 2 "-" "curl" "{forwarded}"\n'

        log = line("10.0.0.1", "9.1.1.1, 10.0.0.2") + line("9.1.1.2", "9.9.9.9") + line("9.1.1.3", "-")
        self.assertEqual(self.addresses(log), {"9.1.1.1": 1, "9.1.1.2": 1, "9.1.1.3": 1})
        self.assertEqual(self.addresses(log, ip_from="last"), {"9.1.1.1": 1, "9.9.9.9": 1, "9.1.1.3": 1})
        self.assertEqual(self.addresses(log, ip_from="first"), {"10.0.0.1": 1, "9.1.1.2": 1, "9.1.1.3": 1})

    def test_takes_the_visitor_behind_a_virtual_host_that_is_an_address_with_a_port(self) -> None:
        end = ' - - [27/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 2 "-" "curl"\n'
        hosts = f"9.9.9.9:443 9.1.1.1{end}[2a00::9]:443 9.1.1.2{end}9.9.9.9:80 2a00::1{end}"
        self.assertEqual(self.addresses(hosts), {"9.1.1.1": 1, "9.1.1.2": 1, "2a00::1": 1})
        self.assertEqual(self.addresses(f"9.1.1.1:50000{end}[2a00::1]:443\n"), {"9.1.1.1": 1, "2a00::1": 1})

    def test_takes_the_forwarded_column_of_w3c_where_the_own_address_is_not_public_or_as_asked(self) -> None:
        for separator, name, blank in (
            (" ", "X-Forwarded-For", "+"),
            (" ", "cs(X-Forwarded-For)", "+"),
            ("\t", "x-forwarded-for", "%20"),
        ):
            lines = f"10.0.0.1 10.0.0.2,{blank}9.1.1.1\n9.1.1.2 9.9.9.9\n9.1.1.3 -\n- 9.1.1.4\n10.0.0.1 -\n"
            log = f"#Software: x\n#Fields: c-ip {name}\n" + lines.replace(" ", separator)
            own = {"9.1.1.3": 1}
            with self.subTest(name):
                both = {"9.1.1.1": 1, "9.1.1.2": 1, "9.1.1.4": 1, "10.0.0.1": 1, **own}
                self.assertEqual(self.addresses(log), both)
                self.assertEqual(self.addresses(log, ip_from="first"), {"10.0.0.1": 2, "9.1.1.2": 1, **own})
                last = {"9.1.1.1": 1, "9.9.9.9": 1, "9.1.1.4": 1, "10.0.0.1": 1, **own}
                self.assertEqual(self.addresses(log, ip_from="last"), last)
                self.assertEqual(self.addresses(log, field=name), {"9.1.1.1": 1, "9.9.9.9": 1, "9.1.1.4": 1})

    def test_finds_the_address_at_any_path_of_json_and_in_any_column(self) -> None:
        nested = '{"a":{"b":{"c":"9.1.1.1"}},"ip":"9.9.9.9"}\n{"a.b":{"c":"[2a00::1]:443"}}\nnull\n{\n'
        self.assertEqual(self.addresses(nested, field="a.b.c", format="json"), {"9.1.1.1": 1})
        listed = '{"headers":{"X-Forwarded-For":["9.1.1.1"]}}\n'
        self.assertEqual(self.addresses(listed, field="headers.X-Forwarded-For.0"), {"9.1.1.1": 1})
        several = '{"for":["10.0.0.1",7,"10.0.0.2, 9.1.1.1","9.9.9.9"]}\n{"for":["10.0.0.1"]}\n{"for":[]}\n'
        self.assertEqual(self.addresses(several, field="for"), {"9.1.1.1": 1, "10.0.0.1": 1})
        columns = "time,visitor\n1,9.1.1.1:80\n"
        self.assertEqual(self.addresses(columns, field="Visitor", format="csv"), {"9.1.1.1": 1})
        self.assertEqual(self.addresses('"a,b",9.1.1.1\n"c",9.1.1.2\n'), {"9.1.1.1": 1, "9.1.1.2": 1})
        self.assertEqual(self.addresses("time,visitor[ip]\n1,9.1.1.1\n", field="Visitor[IP]"), {"9.1.1.1": 1})
        self.assertEqual(self.addresses("ip\tVisitor\n9.9.9.9\t9.1.1.1\n", field="visitor"), {"9.1.1.1": 1})
        self.assertEqual(self.addresses("visitor\n9.1.1.1\n", field="visitor"), {"9.1.1.1": 1})
        for log in ("time,IP_Address\nx,9.1.1.1\n", "time\tip address\nx\t9.1.1.1\n", '"IPAddress"\n9.1.1.1\n'):
            self.assertEqual(self.addresses(log), {"9.1.1.1": 1}, log)
        with self.assertRaisesRegex(CommandError, "no column visitor"):
            self.addresses("time,ip\n", field="visitor", format="csv")

    def test_refuses_a_field_where_the_format_has_none(self) -> None:
        for name in ("apache-combined.log", "alb.log", "haproxy.log"):
            with self.assertRaisesRegex(CommandError, "--field is for json, w3c, csv, tsv alone"):
                self.counted(str(LOGS / name), field="visitor")
        with self.assertRaisesRegex(CommandError, "is read as combined"):
            self.addresses("visitor\n9.1.1.1\n", field="visitor", format="combined")
        self.assertEqual(self.addresses("", field="visitor"), {})

    def test_unpacks_several_members_of_gzip_whatever_the_name(self) -> None:
        members = gzip.compress(b"9.1.1.1 - -\n") + gzip.compress(b"9.1.1.2 - -\n")
        for rest in (b"", b"\0" * 20, b"\x1f and more"):
            self.assertEqual(self.addresses(members + rest), {"9.1.1.1": 1, "9.1.1.2": 1}, rest)
        long = gzip.compress(b"".join(b"9.1.1.%d - -\n" % (number % 200) for number in range(20_000)), mtime=0)
        self.assertEqual(sum(self.addresses(long * 2).values()), 40_000)

    def test_unpacks_zstd_where_python_can_and_else_says_so(self) -> None:
        frame = bytes.fromhex("28b52ffd200c610000") + b"9.1.1.1 - -\n"
        try:
            import compression.zstd  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(CommandError, r"^\S+ cannot be read: Python \S+ cannot unpack zstd"):
                self.addresses(frame)
        else:
            self.assertEqual(self.addresses(frame), {"9.1.1.1": 1})

    def test_says_in_one_line_why_a_log_cannot_be_read(self) -> None:
        early = self.file(gzip.compress(b"9.1.1.1 - -\n" * 99)[:30])
        (self.folder / "empty").mkdir()
        for path, reason in (
            (str(self.folder / "none.gz"), "there is no such file"),
            (early, "ends too early"),
            (str(self.folder / "empty"), "a folder without a file"),
            (self.file(b"\x1f\x8b\x08broken"), "cannot be read"),
        ):
            with self.subTest(reason), self.assertRaisesRegex(CommandError, reason) as raised:
                for one in log_paths([path]):
                    self.counted(one)
            self.assertNotIn("\n", str(raised.exception))

    def followed(self, path: str, *steps: Callable[[], object], **options: Any) -> tuple[str, list[str]]:
        """The format and the addresses of a log that grows by steps."""
        log = open_log(path, FormatOptions(**options), Scripted(*steps))
        return log.format.name, [line.read.ip for line in log.lines if isinstance(line.read, Visit)]

    def test_tells_the_format_of_a_growing_log_by_the_first_address_that_is_found(self) -> None:
        for name in ("iis.log", "cloudfront.log", "caddy.log", "visits.csv", "list.txt"):
            lines = (LOGS / name).read_bytes().splitlines(keepends=True)
            banner = b"starting\n" if name == "caddy.log" else b""
            path = self.file(banner)
            with open(path, "ab", buffering=0) as file:
                steps = [lambda line=line: file.write(line) for line in lines]
                _, found = self.followed(path, *steps)
            self.assertEqual(len(found), 15, name)
        self.assertEqual(self.followed(self.file("x\n" * 60 + "9.1.1.1 - -\n"))[1], ["9.1.1.1"])

    def test_reads_a_rotated_log_until_it_was_quiet_for_five_seconds_and_then_the_new_one(self) -> None:
        path = Path(self.file("9.1.1.1\n"))
        old = path.open("a")
        self.addCleanup(old.close)

        def write(address: str) -> None:
            old.write(f"{address}\n")
            old.flush()

        def rest() -> None:
            pass

        _, found = self.followed(
            str(path),
            lambda: path.rename(self.folder / "rotated"),
            lambda: path.write_text("9.9.9.9\n"),
            *[rest] * 9,
            lambda: write("9.1.1.2"),
            *[rest] * 9,
            lambda: write("9.1.1.3"),
            *[rest] * 10,
            lambda: write("9.9.9.8"),
        )
        self.assertEqual(found, ["9.1.1.1", "9.1.1.2", "9.1.1.3", "9.9.9.9"])

    def test_reads_a_log_that_was_cut_from_its_start(self) -> None:
        path = Path(self.file("9.1.1.1 - -\n"))
        self.assertEqual(self.followed(str(path), lambda: path.write_text("9.1.1.2\n"))[1], ["9.1.1.1", "9.1.1.2"])

    def test_takes_all_files_of_a_folder(self) -> None:
        self.assertIn(str(LOGS / "visits.csv"), log_paths([str(LOGS)]))

    def test_reads_times_with_a_zone_in_utc_without_one_and_as_numbers(self) -> None:
        at = 1_795_796_296_000
        for value in (
            "x [27/Nov/2026:17:18:16 +0100] y",
            "2026-11-27 16:18:16",
            "2026-11-27T17:18:16+01:00",
            "2026-11-27T16:18:16.000999Z",
            *(at // 1_000, at / 1_000, str(at // 1_000), at, at * 1_000, at * 1_000_000),
        ):
            self.assertEqual(time_in(value), at, value)
        for value in ("yesterday", "", None, True, "2026-13-45", "[99/Xyz/2026:00:00:00 +0000]", 1e300, float("nan"), -1):
            self.assertIsNone(time_in(value), value)

    def test_knows_the_spelling_of_addresses_and_which_are_not_public(self) -> None:
        self.assertEqual(canonical_address("2A00:1450:0:0::1"), "2a00:1450::1")
        self.assertEqual(canonical_address(" ::ffff:9.1.1.1 "), "9.1.1.1")
        self.assertEqual(canonical_address("fe80::1%eth0"), "fe80::1%eth0")
        local = [is_local(ip) for ip in ("10.1.2.3", "::1", "fd00::1", "9.1.1.1", "2a00::1")]
        self.assertEqual(local, [True, True, True, False, False])


class TextTest(unittest.TestCase):
    def test_writes_cells_that_no_spreadsheet_takes_for_formulas_and_reads_them_back(self) -> None:
        line = """'=1+1,"a ""b"", c",,7,true,12"""
        self.assertEqual(csv_line(["=1+1", 'a "b", c', None, 7, True, 12.0]), line + "\n")
        self.assertEqual(parse_csv_line(line), ["'=1+1", 'a "b", c', "", "7", "true", "12"])

    def test_sends_no_control_characters_to_a_terminal(self) -> None:
        self.assertEqual(csv_line(["a\x1b[2J\x9bb", "\t=1", "\r\n-1"]), "a [2J b, =1, -1\n")
        text = progress_text(LookupProgress(1, 0, 0, Waiting("x\x1b]0;y\x07", 1)), 0)
        self.assertEqual(text, f"[{'-' * 24}] 0 of 1 (0 %), 0 pending, 0.0/s; "
                               "the service takes new addresses again in 1 s (x ]0;y )")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
