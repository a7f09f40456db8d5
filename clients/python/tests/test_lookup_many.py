import threading
import unittest
from typing import Any, Callable, Iterator
from urllib.parse import parse_qs, urlsplit

from service import ServiceTestCase, error

from doorplate_client import LookedUp, LookupMany


def ip_of(request: dict[str, Any]) -> str:
    if request["body"]:
        return str(request["body"]["ip"])
    return parse_qs(urlsplit(request["path"]).query)["ip"][0]


def complete(request: dict[str, Any]) -> Any:
    return 200, {}, {"ip": ip_of(request), "status": "complete", "refresh_status": "not_needed"}


def pending(request: dict[str, Any]) -> Any:
    return 202, {"Retry-After": "15"}, {"ip": ip_of(request), "status": "pending"}


def enriching(request: dict[str, Any]) -> Any:
    """Saved after it was submitted, and polled once."""
    return pending(request) if request["method"] == "POST" else complete(request)


def addresses(count: int) -> list[str]:
    return [f"9.1.{number >> 8}.{number & 255}" for number in range(count)]


def ips(results: list[LookedUp]) -> list[str]:
    return [one.ip for one in results]


class LookupManyTest(ServiceTestCase):
    def answering(self, answer: Callable[[dict[str, Any]], Any]) -> Any:
        """A client of a service whose requests have the time on the clock."""

        def timed(request: dict[str, Any]) -> Any:
            request["at"] = self.now
            return answer(request)

        return self.serve(timed)

    def submitted(self) -> list[str]:
        return [ip_of(one) for one in self.service.requests if one["method"] == "POST"]

    def assert_ended(self, many: LookupMany) -> None:
        self.assertEqual(list(many), [])

    def test_looks_up_each_address_once_however_it_is_spelled_and_polls_what_is_new(self) -> None:
        client = self.answering(enriching)
        many = client.lookup_many(["2A00:1450::1", "2a00:1450:0:0::1", " 9.1.1.1", "::ffff:9.1.1.1"])
        self.assertEqual(many.progress.total, 2)
        results = list(many)
        self.assertEqual(sorted(ips(results)), ["2a00:1450::1", "9.1.1.1"])
        self.assertTrue(all(one.result and one.error is None for one in results))
        self.assertEqual(sorted(one["method"] for one in self.service.requests), ["GET", "GET", "POST", "POST"])
        self.assertGreaterEqual(self.now, 15)
        progress = many.progress
        self.assertEqual((progress.total, progress.done, progress.pending, progress.waiting), (2, 2, 0, None))

    def test_has_no_more_requests_under_way_than_asked_for(self) -> None:
        lock = threading.Lock()
        full = threading.Barrier(3, timeout=10)
        under_way, most = 0, 0

        def counted(request: dict[str, Any]) -> Any:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            full.wait()
            with lock:
                under_way -= 1
            return complete(request)

        client = self.answering(counted)
        self.assertEqual(len(list(client.lookup_many(addresses(12), concurrency=3))), 12)
        self.assertEqual(most, 3)

    def test_pauses_submissions_alone_while_the_intake_is_full_and_says_why(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            if request["method"] == "GET":
                return complete(request)
            if len(self.submitted()) == 3:
                return 429, {"Retry-After": "60"}, error("enrichment_capacity")
            return pending(request)

        client = self.answering(answer)
        many = client.lookup_many(addresses(6), concurrency=1)
        seen = []
        for one in many:
            waiting = many.progress.waiting
            seen.append((one.ip, waiting and waiting.code, self.now))
        self.assertEqual([code for _, code, _ in seen[:2]], ["enrichment_capacity"] * 2)
        self.assertTrue(all(at < 60 for _, _, at in seen[:2]), seen)
        self.assertEqual(len(seen), 6)
        posts = [one["at"] for one in self.service.requests if one["method"] == "POST"]
        self.assertGreaterEqual(posts[3], 60)
        self.assertEqual(set(self.submitted()), set(addresses(6)))

    def test_pauses_every_request_at_the_rate_limit_of_the_key(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            if len(self.service.requests) == 3:
                return 429, {"Retry-After": "7"}, error("rate_limit")
            return complete(request)

        client = self.answering(answer)
        self.assertEqual(len(list(client.lookup_many(addresses(4), concurrency=1))), 4)
        self.assertEqual([one["at"] for one in self.service.requests], [0, 0, 0, 7, 7])

    def test_repeats_a_request_whose_outcome_is_unknown_and_gives_up_after_the_attempts(self) -> None:
        client = self.answering(lambda request: None if ip_of(request) == "9.1.0.1" else complete(request))
        results = list(client.lookup_many(addresses(3), attempts=4))
        failed = next(one for one in results if one.ip == "9.1.0.1")
        assert failed.error is not None
        self.assertEqual((failed.result, failed.error.kind, failed.error.outcome), (None, "network", "unknown"))
        self.assertEqual(self.submitted().count("9.1.0.1"), 4)
        self.assertGreaterEqual(self.now, 0.5 + 1 + 2)
        self.assertEqual(len(results), 3)

    def test_gives_the_refusal_of_one_address_as_its_result_and_goes_on(self) -> None:
        refused = (400, {}, error("invalid_ip"))
        client = self.answering(lambda request: refused if ip_of(request) == "10.0.0.1" else complete(request))
        results = {one.ip: one.error and one.error.code for one in client.lookup_many(["10.0.0.1", "9.1.1.1"])}
        self.assertEqual(results, {"10.0.0.1": "invalid_ip", "9.1.1.1": None})

    def test_submits_again_what_the_service_no_longer_knows(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            if request["method"] == "GET":
                return 404, {}, error("not_requested")
            return pending(request) if len(self.submitted()) == 1 else complete(request)

        client = self.answering(answer)
        self.assertEqual(ips(list(client.lookup_many(["9.1.1.1"]))), ["9.1.1.1"])
        self.assertEqual([one["method"] for one in self.service.requests], ["POST", "GET", "POST"])

    def test_gives_the_limit_as_the_result_at_once_with_a_key_that_takes_no_new_address(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            if request["path"].startswith("/v1/usage"):
                return 200, {}, {"limits": {"new_enrichments_per_day": 0}}
            return 429, {"Retry-After": "40000"}, error("enrichment_limit")

        client = self.answering(answer)
        results = list(client.lookup_many(addresses(5), concurrency=2))
        self.assertEqual([one.error and one.error.code for one in results], ["enrichment_limit"] * 5)
        self.assertEqual(self.now, 0)
        self.assertEqual(len([one for one in self.service.requests if one["path"].startswith("/v1/usage")]), 1)

    def test_waits_for_the_next_day_where_the_limit_of_the_key_cannot_be_read(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            if request["path"].startswith("/v1/usage"):
                return 503, {}, error("service_unavailable")
            is_first = len(self.submitted()) == 1
            return (429, {"Retry-After": "40000"}, error("enrichment_limit")) if is_first else complete(request)

        client = self.answering(answer)
        self.assertEqual([one.error for one in client.lookup_many(["9.1.1.1"])], [None])
        self.assertGreaterEqual(self.now, 40_000)

    def test_leaves_out_what_an_earlier_run_has_finished(self) -> None:
        client = self.answering(complete)
        results = list(client.lookup_many(addresses(5), skip=addresses(3)))
        self.assertEqual(sorted(ips(results)), ["9.1.0.3", "9.1.0.4"])
        self.assertEqual(sorted(self.submitted()), ["9.1.0.3", "9.1.0.4"])

    def test_looks_up_what_a_generator_yields_before_the_generator_ends(self) -> None:
        client = self.answering(complete)
        taken = threading.Event()

        def coming() -> Iterator[str]:
            yield "9.1.1.1"
            self.assertTrue(taken.wait(10))
            yield "9.1.1.2"

        many = client.lookup_many(coming())
        self.assertEqual(next(many).ip, "9.1.1.1")
        taken.set()
        self.assertEqual(ips(list(many)), ["9.1.1.2"])

    def test_ends_with_the_error_of_the_addresses(self) -> None:
        def broken() -> Iterator[str]:
            yield "9.1.1.1"
            raise OSError("the disk is gone")

        client = self.answering(complete)
        many = client.lookup_many(broken())
        with self.assertRaisesRegex(OSError, "the disk is gone"):
            list(many)
        self.assert_ended(many)

    def test_begins_no_request_after_its_block_has_been_left(self) -> None:
        client = self.answering(complete)
        with client.lookup_many(addresses(100), concurrency=2) as many:
            next(many)
        self.assert_ended(many)
        self.assertLess(len(self.service.requests), 5)

    def test_ends_at_once_when_it_is_interrupted_while_it_waits(self) -> None:
        client = self.answering(pending)

        def interrupted(seconds: float) -> None:
            raise KeyboardInterrupt

        object.__setattr__(client._transport, "sleep", interrupted)
        many = client.lookup_many(addresses(3))
        with self.assertRaises(KeyboardInterrupt):
            next(many)
        self.assert_ended(many)
        self.assertEqual(len(self.service.requests), 3)

    def test_refuses_arguments_that_cannot_be_meant(self) -> None:
        client = self.answering(complete)
        for options in ({"concurrency": 0}, {"attempts": 0}):
            with self.assertRaises(ValueError):
                client.lookup_many([], **options)
        with self.assertRaises(TypeError):
            client.lookup_many("9.1.1.1")


if __name__ == "__main__":
    unittest.main()
