import importlib.util
import json
import unittest
import unittest.mock
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from doorplate_client import Client

from service import ServiceTestCase

# The clients of all languages judge the same ledgers.
SHARED = json.loads(
    (Path(__file__).resolve().parents[3] / "test" / "clients" / "ledger" / "cases.json").read_text("utf-8")
)


def changed(change: dict[str, Any]) -> list[dict[str, Any]]:
    source = [] if change.get("empty") else SHARED["rewritten" if change.get("rewritten") else "entries"]
    entries = [{**one} for one in source]
    if "set" in change:
        entries[change["set"][0]].update(change["set"][1])
    if "remove" in change:
        del entries[change["remove"]]
    if "insert" in change:
        entries.insert(*change["insert"])
    if "exchange" in change:
        a, b = change["exchange"]
        entries[a], entries[b] = {**entries[b], "number": a}, {**entries[a], "number": b}
    entries = entries[: change.get("cut")]
    return [{**one, "number": number} for number, one in enumerate(entries)] if change.get("renumber") else entries


@unittest.skipUnless(importlib.util.find_spec("cryptography"), "verify_ledger needs the package cryptography")
class LedgerTest(ServiceTestCase):
    def ledger(self, change: dict[str, Any]) -> Client:
        """A client of a service with such a ledger, which answers with pages of two."""
        entries = changed(change)
        has_anchor = not change.get("empty") or change.get("anchors")

        def answer(request: dict[str, Any]) -> Any:
            asked = {name: values[0] for name, values in parse_qs(urlsplit(request["path"]).query).items()}
            month = asked.get("month", SHARED["now"])
            own = [one for one in entries if one["completed_at"].startswith(month)]
            start = int(asked.get("cursor", "0"))
            end = start + len(own[start : start + 2])
            last = entries[-1] if entries else None
            units = sum(one["units"] for one in own)
            head = last and {"number": last["number"], "digest": last["digest"], **change.get("head", {})}
            body = {
                "month": month,
                "entries": own[start:end],
                "totals": {"entries": len(own) + change.get("totals", 0), "units": units},
                "head": head,
                "anchor": {**SHARED["anchor"], **change.get("anchor", {})} if has_anchor else None,
                "next_cursor": str(end),
                "has_more": end < len(own),
                "request_id": "id",
            }
            return 200, {}, body

        return self.serve(answer)

    def test_judges_each_ledger(self) -> None:
        for case in SHARED["cases"]:
            with self.subTest(case["name"]):
                change = case["change"]
                anchors = [] if change.get("empty") and not change.get("anchors") else SHARED["kept"]
                proof = self.ledger(change).verify_ledger(anchors=anchors)
                found = proof.difference and [proof.difference.kind, proof.difference.number]
                self.assertEqual((found, proof.ok), (case["expected"], case["expected"] is None), proof.difference)

    def test_sums_up_by_month_in_the_order_of_the_numbers(self) -> None:
        numbers: list[int] = []
        proof = self.ledger({}).verify_ledger(on_entry=lambda entry: numbers.append(entry["number"]))
        self.assertEqual(numbers, [0, 1, 2, 3, 4, 5])
        months = [(one.month, one.entries, one.units) for one in proof.months]
        self.assertEqual(months, [("2026-01", 2, 1), ("2026-02", 1, 1), ("2026-03", 3, 2)])
        self.assertEqual((proof.entries, proof.units, proof.anchor), (6, 4, SHARED["anchor"]))

    def test_lists_the_current_month_and_stays_in_it(self) -> None:
        self.assertEqual([one["number"] for one in self.ledger({}).ledger(limit=2)], [2, 4, 5])
        self.assertEqual(
            self.methods(), ["GET /v1/ledger?limit=2", "GET /v1/ledger?month=2026-03&cursor=2&limit=2"]
        )

class WithoutCryptographyTest(ServiceTestCase):
    def test_names_the_package_that_is_missing(self) -> None:
        client = self.serve((500, {}, {}))
        with unittest.mock.patch.dict("sys.modules", {"cryptography.exceptions": None}):
            with self.assertRaisesRegex(ImportError, r"needs cryptography: pip install 'doorplate-client\[ledger\]'"):
                client.verify_ledger()
        self.assertEqual(self.service.requests, [])
