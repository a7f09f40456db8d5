import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable

from service import KEY, Service, ServiceTestCase, error

from doorplate_client import Client, DoorplateError, LookedUp
from doorplate_client.cli.companies_file import HEADER, CompaniesFile, finished_before
from doorplate_client.cli.enrich import EnrichOptions, enrich
from doorplate_client.cli.formats import FormatOptions
from doorplate_client.cli.text import CommandError, parse_csv_line

LOG = "9.1.1.1 - - [27/Nov/2026:16:18:16 +0000]\n9.1.1.2 - -\n9.1.1.1 - -\n10.0.0.1 - -\nx\n"
SECONDS = 20.0


def found(ip: str) -> Any:
    company = dict.fromkeys(("website", "industry", "employees", "city", "country_code"), None)
    return 200, {}, {
        **{"ip": ip, "status": "complete", "refresh_status": "not_needed", "match_type": "company"},
        **{"company_found": True, "company": {**company, "name": f"of {ip}"}, "network": {"is_isp": False}},
        **{"stale": False, "enriched_at": None},
    }  # fmt: skip


def invalid(ip: str) -> LookedUp:
    refused = DoorplateError("no", kind="answer", outcome="refused", status=400, code="invalid_ip")
    return LookedUp(ip, None, refused)


class Folder(ServiceTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out.csv"
        self.part = self.folder / "out.csv.part"
        self.log = self.folder / "access.log"
        self.log.write_text(LOG)

    def rows(self, path: Path) -> list[list[str]]:
        return [parse_csv_line(line) for line in path.read_text().split("\n")[1:-1]]

    def answering(self, reply: Callable[[str], Any], daily: int | None = None) -> Client:
        """A client of a service that answers lookups by address. Usage has the limit of new addresses."""
        self.asked: list[str] = []

        def answer(request: dict[str, Any]) -> Any:
            if request["path"].startswith("/v1/usage"):
                limits = {"requests_per_second": 50, "new_enrichments_per_day": daily, "pending_enrichments": 9}
                return 200, {}, {"limits": limits, "outcomes": {"enqueued": 2}}
            self.asked.append(request["body"]["ip"])
            return reply(request["body"]["ip"])

        self.service = Service(answer)
        self.addCleanup(self.service.close)
        return Client(self.service.url, KEY)

    def run_enrich(self, client: Client, logs: list[Path] | None = None, **options: Any) -> tuple[bool, str]:
        terminal = io.StringIO()
        chosen = EnrichOptions([str(one) for one in logs or [self.log]], str(self.out), **options)
        return enrich(chosen, client, terminal), terminal.getvalue()

    def wait_until(self, what: str, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not is_so():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)


class EnrichTest(Folder):
    def test_writes_beside_the_file_and_gives_it_its_name_with_counts_and_a_summary(self) -> None:
        client = self.answering(found)
        summary = self.folder / "summary.csv"
        is_done, said = self.run_enrich(client, summary=str(summary), verbose=True)
        self.assertTrue(is_done)
        self.assertEqual(
            sorted(row[:5] for row in self.rows(self.out)),
            [["9.1.1.1", "2", "company", "true", "of 9.1.1.1"], ["9.1.1.2", "1", "company", "true", "of 9.1.1.2"]],
        )
        self.assertFalse(self.part.exists())
        self.assertEqual(
            summary.read_text(),
            "name,website,visits,addresses,first,last\n"
            "of 9.1.1.1,,2,1,2026-11-27T16:18:16.000Z,2026-11-27T16:18:16.000Z\nof 9.1.1.2,,1,1,,\n",
        )
        self.assertIn("common or combined", said)
        self.assertIn("no address: x\n", said)
        self.assertIn("2 addresses, 0 finished before, 2 to look up; the key has no daily limit", said)
        self.assertIn("2 companies, 0 networks of providers, 0 unclassified, 0 that no lookup takes, 0 failed; ", said)
        self.assertIn("5 lines, 1 with addresses that are not public, 1 without one.\nThe results are in ", said)

        self.log.write_text(LOG + "9.1.1.3 - -\n")
        self.run_enrich(client)
        self.assertEqual(sorted(self.asked), ["9.1.1.1", "9.1.1.2", "9.1.1.3"])
        self.assertEqual(len(self.rows(self.out)), 3)

    def test_says_what_it_would_ask_for_and_spends_nothing_in_a_dry_run(self) -> None:
        self.log.write_text(LOG + "9.1.1.3 - -\n")
        _, said = self.run_enrich(self.answering(found, daily=3), dry_run=True)
        told = r"3 to look up; the key takes 1 of 3 new addresses today; at least 1 s if all are saved, or 1 more days"
        self.assertRegex(said, told)
        _, said = self.run_enrich(self.answering(found, daily=2), dry_run=True)
        told = r"the key's 2 new addresses of today are used up; at least 1 s if all are saved, or 2 more days if all"
        self.assertRegex(said, told)
        self.assertEqual((self.asked, self.out.exists(), self.part.exists()), ([], False, False))

    def test_ends_at_a_refusal_that_says_nothing_of_the_address_and_writes_no_line_for_it(self) -> None:
        for refusal in ((401, {}, error("unauthorized")), (404, {}, b"<html>")):
            with self.subTest(refusal[0]):
                client = self.answering(lambda _: refusal)
                with self.assertRaises(DoorplateError):
                    self.run_enrich(client)
                self.assertEqual(self.part.read_text(), HEADER)
        self.run_enrich(self.answering(found))
        self.assertEqual(len(self.rows(self.out)), 2)

    def test_waits_for_no_midnight_with_a_key_that_takes_no_new_address_and_tries_again(self) -> None:
        limited = (429, {"Retry-After": "40000"}, error("enrichment_limit"))
        client = self.answering(lambda ip: limited if ip == "9.1.1.2" else found(ip), daily=0)
        terminal = io.StringIO()
        with self.assertRaisesRegex(CommandError, r"\A1 address failed: the same command tries it again\Z"):
            enrich(EnrichOptions([str(self.log)], str(self.out)), client, terminal)
        told = "the key looks up saved addresses alone; at least 1 s if all are saved, and new ones fail\n"
        self.assertIn(told, terminal.getvalue())
        self.assertIn(["9.1.1.2", "enrichment_limit"], [[row[0], row[-1]] for row in self.rows(self.out)])
        self.run_enrich(self.answering(found))
        self.assertEqual(self.asked, ["9.1.1.2"])
        self.assertEqual(len(self.rows(self.out)), 2)

    def test_ends_with_what_was_tried_where_no_line_has_an_address(self) -> None:
        client = self.answering(found)
        self.log.write_text('{"a":1}\n')
        with self.assertRaisesRegex(CommandError, r'no line has an address when it is read as JSON .* begins: {"a":1}'):
            self.run_enrich(client)
        self.log.write_text("")
        with self.assertRaisesRegex(CommandError, "is empty"):
            self.run_enrich(client)
        self.log.write_text(LOG)
        with self.assertRaisesRegex(CommandError, "--field is for json"):
            self.run_enrich(client, formats=FormatOptions(field="visitor"))
        self.assertEqual(self.service.requests, [])
        with self.assertRaisesRegex(CommandError, "--follow takes one file"):
            self.run_enrich(client, [self.log, self.log], follow=True)


    def test_leaves_a_file_of_something_else_where_the_summary_should_be_before_the_first_lookup(self) -> None:
        client = self.answering(found)
        summary = self.folder / "summary.csv"
        summary.write_text("precious\n")
        device = self.folder / "device"
        device.symlink_to(os.devnull)
        for path, reason in (
            (summary, "is not a file of this command"),
            (self.log, "is a log or a file of the results"),
            *((Path(f"{self.out}{end}"), "is a log or a file of the results") for end in ("", ".part", ".new")),
            (self.folder / "none" / "summary.csv", "there is no folder"),
            (self.folder, "it is a folder"),
            (device, "it is not a regular file"),
        ):
            with self.subTest(path.name), self.assertRaisesRegex(CommandError, reason):
                self.run_enrich(client, summary=str(path), force=reason.startswith("is a log"))
        with self.assertRaisesRegex(CommandError, "is a log"):
            self.run_enrich(client, [self.folder], summary=str(self.log), force=True)
        self.assertEqual((self.asked, summary.read_text(), self.log.read_text()), ([], "precious\n", LOG))
        self.assertEqual((self.out.exists(), self.part.exists()), (False, False))
        self.run_enrich(client, summary=str(summary), force=True)
        self.log.write_text("9.1.1.2 - -\n")
        self.run_enrich(client, summary=str(summary))
        self.assertEqual(summary.read_text(), "name,website,visits,addresses,first,last\nof 9.1.1.2,,1,1,,\n")
        self.assertFalse(Path(f"{summary}.new").exists())

    def test_reads_no_file_of_its_own_and_no_dangling_link_as_a_log_of_a_folder(self) -> None:
        (self.folder / "gone.log").symlink_to(self.folder / "none")
        for end in (".part", ".new"):
            Path(f"{self.out}{end}").write_text(HEADER)
        summary = str(self.folder / "summary.csv")
        Path(summary).touch()
        for lines in ("5 lines", "6 lines"):
            _, said = self.run_enrich(self.answering(found), [self.folder], summary=summary)
            self.assertIn(f"{lines}, 1 with addresses that are not public, 1 without one.\n", said)
            self.log.write_text(LOG + "9.1.1.3 - -\n")
        self.assertEqual(self.asked, ["9.1.1.3"])


class CompaniesFileTest(Folder):
    def test_continues_what_an_earlier_run_has_left_without_the_half_line_of_a_killed_run(self) -> None:
        first = CompaniesFile(str(self.out))
        first.write(invalid("9.1.1.1"), 3)
        first.close()
        self.part.write_text(self.part.read_text() + "9.1.1.2,4,comp")
        second = CompaniesFile(str(self.out))
        self.assertEqual(second.finished, {"9.1.1.1"})
        second.write(invalid("9.1.1.3"), 1)
        second.finish({"9.1.1.3": 2})
        rows = "9.1.1.1,3,,,,,,,,,,,,invalid_ip\n9.1.1.3,2,,,,,,,,,,,,invalid_ip\n"
        self.assertEqual(self.out.read_text(), HEADER + rows)
        self.assertEqual(finished_before(str(self.out)), {"9.1.1.1", "9.1.1.3"})

    def test_continues_a_run_that_was_killed_within_its_own_header(self) -> None:
        self.part.write_text("ip,requests,mat")
        CompaniesFile(str(self.out)).finish({})
        columns = "ip,requests,match_type,company_found,name,website,industry,employees,city,country_code,is_isp,stale"
        self.assertEqual(self.out.read_bytes(), f"{columns},enriched_at,error\n".encode())

    def test_leaves_a_file_of_something_else_unless_it_is_forced(self) -> None:
        self.out.write_text("a,b\nlast")
        with self.assertRaisesRegex(CommandError, "not a file of this command"):
            CompaniesFile(str(self.out))
        self.assertEqual((self.out.read_text(), self.part.exists()), ("a,b\nlast", False))
        forced = CompaniesFile(str(self.out), force=True)
        self.assertEqual(self.out.read_text(), "a,b\nlast")
        forced.finish({})
        self.assertEqual(self.out.read_text(), HEADER)

    def test_says_that_a_folder_is_no_file(self) -> None:
        self.out.mkdir()
        with self.assertRaisesRegex(CommandError, "it is a folder"):
            finished_before(str(self.out))


class CommandTest(Folder):
    """The process: its exit codes, its signals, and its standard input."""

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-B", "-W", "error", "-m", "doorplate_client", *arguments]
        path = str(Path(__file__).resolve().parents[1] / "src")
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path, **environment}, stdin=pipe, stdout=pipe, stderr=pipe
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def enriching(self, *arguments: str) -> "subprocess.Popen[bytes]":
        environment = {"DOORPLATE_URL": self.service.url, "DOORPLATE_API_KEY": KEY}
        return self.start("enrich", *arguments, "--out", str(self.out), **environment)

    def end(self, process: "subprocess.Popen[bytes]") -> tuple[int, str]:
        _, said = process.communicate(timeout=SECONDS)
        return process.returncode, said.decode()

    def test_ends_with_2_and_the_help_at_wrong_usage(self) -> None:
        for arguments, reason in (
            (["enrich", "a.log"], "--out is missing"),
            (["a.log"], "enrich and a log are needed"),
            (["enrich", "a.log", "--out", "b", "--format", "xml"], "--format is none of"),
            (["enrich", "a.log", "--out", "b", "--concurrency", "0"], "--concurrency must be 1 or more"),
            (["enrich", "a.log", "--what"], "--what"),
        ):
            with self.subTest(reason):
                code, said = self.end(self.start(*arguments))
                self.assertEqual(code, 2)
                self.assertRegex(said, f"^doorplate-client: .*{reason}")
                self.assertIn("--ip-from", said)

    def test_ends_with_1_and_one_line_at_a_log_that_cannot_be_read(self) -> None:
        self.answering(found)
        self.part.write_text(HEADER)
        for options in ([], ["--follow"]):
            code, said = self.end(self.enriching(str(self.folder / "none.log"), *options))
            self.assertEqual(code, 1)
            self.assertRegex(said, r"\Adoorplate-client: \S+none.log cannot be read: there is no such file\n\Z")
            self.assertEqual((self.out.exists(), self.part.read_text()), (False, HEADER))

    def test_reads_the_standard_input_and_looks_up_what_comes_before_its_end(self) -> None:
        self.answering(found)
        process = self.enriching("-")
        assert process.stdin
        process.stdin.write(b"9.1.1.1\n")
        process.stdin.flush()
        self.wait_until("the first row", lambda: self.part.exists() and len(self.rows(self.part)) == 1)
        process.stdin.write(b"9.1.1.1\n9.1.1.2\n")
        code, said = self.end(process)
        self.assertEqual(code, 0, said)
        self.assertEqual([row[:2] for row in self.rows(self.out)], [["9.1.1.1", "2"], ["9.1.1.2", "1"]])

    def test_ends_with_1_where_an_address_failed_but_not_for_one_that_no_lookup_takes(self) -> None:
        refused = {"9.1.1.1": (400, {}, error("invalid_ip")), "9.1.1.2": (429, {}, error("enrichment_limit"))}
        self.answering(refused.__getitem__, daily=0)
        code, said = self.end(self.enriching(str(self.log)))
        self.assertEqual(code, 1)
        told = r"results are in \S+\ndoorplate-client: 1 address failed: the same command tries it again\n\Z"
        self.assertRegex(said, told)
        self.assertEqual(sorted(row[-1] for row in self.rows(self.out)), ["enrichment_limit", "invalid_ip"])
        self.log.write_text("9.1.1.1 - -\n")
        self.assertEqual(self.end(self.enriching(str(self.log)))[0], 0)

    def test_stops_with_130_at_a_signal_and_the_same_command_goes_on(self) -> None:
        hangs = threading.Event()
        self.addCleanup(hangs.set)

        def reply(ip: str) -> Any:
            if ip == "9.1.1.2":
                hangs.wait(SECONDS)
            return found(ip)

        self.answering(reply)
        process = self.enriching(str(self.log))
        self.wait_until("the first row", lambda: self.part.exists() and len(self.rows(self.part)) == 1)
        process.send_signal(signal.SIGTERM)
        code, said = self.end(process)
        self.assertEqual(code, 130, said)
        self.assertIn("Stopped: the same command goes on from here. The results so far are in ", said)
        hangs.set()
        code, said = self.end(self.enriching(str(self.log)))
        self.assertEqual(code, 0, said)
        self.assertIn("1 finished before, 1 to look up", said)
        self.assertEqual(len(self.rows(self.out)), 2)

    def test_follows_a_growing_log_and_puts_the_counts_and_the_summary_right_at_its_end(self) -> None:
        self.answering(found)
        self.log.write_text("9.1.1.1 - -\n")
        summary = self.folder / "summary.csv"
        process = self.enriching(str(self.log), "--follow", "--summary", str(summary))

        def written(count: int) -> None:
            self.wait_until(f"{count} rows", lambda: self.out.exists() and len(self.rows(self.out)) == count)

        written(1)
        with self.log.open("a") as file:
            file.write("9.1.1.1 - -\n9.1.1.2 - -\n")
        written(2)
        process.send_signal(signal.SIGINT)
        code, said = self.end(process)
        self.assertEqual(code, 0, said)
        self.assertEqual([row[:2] for row in self.rows(self.out)], [["9.1.1.1", "2"], ["9.1.1.2", "1"]])
        self.assertEqual(
            summary.read_text(),
            "name,website,visits,addresses,first,last\nof 9.1.1.1,,2,1,,\nof 9.1.1.2,,1,1,,\n",
        )


if __name__ == "__main__":
    unittest.main()
