import time
import unittest
import unittest.mock
from datetime import datetime, timedelta, timezone

from service import KEY, ServiceTestCase, error

PENDING = {"status": "pending", "ip": "8.8.8.8"}
COMPLETE = {"status": "complete", "stale": False, "refresh_status": "not_needed", "company_found": True}


class ClientTest(ServiceTestCase):
    def test_a_lookup_posts_once_and_polls_as_late_as_the_service_asks(self) -> None:
        client = self.serve((202, {"Retry-After": "15"}, PENDING), (202, {"Retry-After": "15"}, PENDING), (200, {}, COMPLETE))
        self.assertTrue(client.lookup("8.8.8.8")["company_found"])
        self.assertEqual(self.methods(), ["POST /v1/lookup"] + ["GET /v1/lookup?ip=8.8.8.8"] * 2)
        self.assertTrue(all(15 <= seconds <= 16.5 for seconds in self.slept))
        self.assertEqual(self.service.requests[0]["headers"]["Authorization"], f"Bearer {KEY}")

    def test_a_lookup_that_does_not_end_before_its_deadline_is_unknown_and_shows_the_work(self) -> None:
        client = self.serve((202, {"Retry-After": "15"}, PENDING))
        failed = self.failure(lambda: client.lookup("8.8.8.8", deadline=20))
        self.assertEqual((failed.kind, failed.outcome, failed.unfinished), ("deadline", "unknown", PENDING))
        self.assertLessEqual(self.now, 20)

    def test_a_refusal_is_not_repeated_and_holds_no_address(self) -> None:
        client = self.serve((400, {}, error("invalid_ip")))
        failed = self.failure(lambda: client.lookup("10.0.0.1"))
        self.assertEqual(
            (failed.kind, failed.outcome, failed.status, failed.code, failed.request_id),
            ("answer", "refused", 400, "invalid_ip", "id-1"),
        )
        self.assertNotIn("10.0.0.1", str(failed))
        self.assertEqual(len(self.service.requests), 1)

    def test_reads_are_repeated_after_lost_connections_and_5xx_and_make_the_outcome_unknown(self) -> None:
        client = self.serve(None, (503, {"Retry-After": "2"}, error("api_busy")), (200, {}, {"status": "ok"}))
        self.assertEqual(client.health(), {"status": "ok"})
        self.assertEqual(len(self.service.requests), 3)
        client = self.serve(None, (400, {}, error("invalid_ip")))
        failed = self.failure(lambda: client.request_lookup("8.8.8.8"))
        self.assertEqual((failed.code, failed.outcome), ("invalid_ip", "unknown"))

    def test_what_makes_something_new_is_repeated_after_a_429_only(self) -> None:
        client = self.serve((429, {"Retry-After": "1"}, error("rate_limit")), (503, {}, error("service_unavailable")))
        failed = self.failure(lambda: client.trackers.create("Site", ["https://example.com"]))
        self.assertEqual((failed.status, failed.outcome), (503, "unknown"))
        self.assertEqual(len(self.service.requests), 2)

    def test_a_wait_of_more_than_30_seconds_is_an_error_at_once(self) -> None:
        client = self.serve((429, {"Retry-After": "3600"}, error("enrichment_limit")))
        failed = self.failure(lambda: client.request_lookup("8.8.8.8"))
        self.assertEqual((failed.retry_after, self.slept), (3600, []))

    def test_a_reveal_repeats_with_one_key_and_tells_it_with_every_error(self) -> None:
        receipt = {"status": "complete", "reveal_id": "r1"}
        client = self.serve(None, (202, {"Retry-After": "15"}, {**receipt, "status": "pending"}), (200, {}, receipt))
        revealed = client.reveal("s1")
        keys = {one["headers"].get("Idempotency-Key") for one in self.service.requests[:2]}
        self.assertEqual(keys, {revealed.idempotency_key})
        self.assertEqual(self.methods()[2], "GET /v1/reveals/r1")
        client = self.serve((410, {}, error("session_expired")))
        failed = self.failure(lambda: client.reveal("s1", idempotency_key="k1"))
        self.assertEqual((failed.outcome, failed.idempotency_key), ("refused", "k1"))

    def test_a_feed_moves_its_cursor_when_a_page_has_been_taken(self) -> None:
        pages = [
            (200, {}, {"sessions": [{"session_id": "1"}, {"session_id": "2"}], "next_cursor": "a", "has_more": True}),
            (200, {}, {"sessions": [{"session_id": "3"}], "next_cursor": "b", "has_more": False}),
        ]
        client = self.serve(*pages)
        feed = client.sessions(tracker_id="t1")
        seen = []
        for session in feed:
            seen.append((session["session_id"], feed.cursor))
        self.assertEqual(seen, [("1", None), ("2", None), ("3", "a")])
        self.assertEqual(feed.cursor, "b")
        self.assertEqual(self.methods()[1], "GET /v1/sessions?tracker_id=t1&cursor=a")

    def test_a_redirect_is_not_followed_with_the_key(self) -> None:
        client = self.serve((307, {"Location": "/elsewhere"}, {}))
        failed = self.failure(lambda: client.trackers.create("Site", ["https://example.com"]))
        self.assertEqual((failed.status, len(self.service.requests)), (307, 1))

    def test_an_answer_whose_headers_or_body_drip_is_a_timeout(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2000\r\n"
        for sent in (head, head + b"\r\n", b"HTTP/1.1 100 Continue\r\n", b""):
            client = self.drip(sent)
            began = time.monotonic()
            failed = self.failure(client.health)
            self.assertEqual((failed.kind, failed.outcome, failed.status), ("timeout", "unknown", None))
            self.assertLess(time.monotonic() - began, 2)

    def test_the_deadline_of_a_call_that_polls_holds_while_headers_drip(self) -> None:
        client = self.drip(b"HTTP/1.1 200 OK\r\n")
        object.__setattr__(client._transport, "timeout", 15.0)
        began = time.monotonic()
        failed = self.failure(lambda: client.lookup("8.8.8.8", deadline=0.5))
        self.assertEqual(failed.outcome, "unknown")
        self.assertLess(time.monotonic() - began, 2)

    def test_a_success_that_is_cut_off_is_repeated_with_the_same_key(self) -> None:
        receipt = {"reveal_id": "r1", "status": "complete", "billable_units": 1}
        client = self.serve((200, {"Content-Length": "500"}, receipt), (200, {}, receipt))
        self.assertEqual(client.reveal("s1").receipt, receipt)
        self.assertEqual(len({one["headers"]["Idempotency-Key"] for one in self.service.requests}), 1)
        self.assertEqual(len(self.service.requests), 2)

    def test_an_answer_that_is_cut_off_in_its_headers_is_no_answer(self) -> None:
        for sent in (b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Ty", b"HTTP/1.1 503 Busy\r\nA: b\r\n"):
            failed = self.failure(self.cut_off(sent).health)
            self.assertEqual((failed.kind, failed.outcome, failed.status), ("network", "unknown", None), sent)

    def test_an_answer_that_is_too_long_is_not_read_to_its_end(self) -> None:
        client = self.serve((200, {}, b" " * 200_000))
        with unittest.mock.patch("doorplate_client._transport.MAX_BODY_BYTES", 100_000):
            failed = self.failure(client.health)
        self.assertEqual((failed.kind, failed.outcome, failed.status), ("network", "unknown", None))

    def test_waits_as_any_form_of_date_says(self) -> None:
        soon = datetime.now(timezone.utc) + timedelta(minutes=5)
        for value in (soon.strftime("%A, %d-%b-%y %H:%M:%S GMT"), soon.strftime("%a %b %d %H:%M:%S %Y"), " 300 "):
            client = self.serve((400, {"Retry-After": value}, error("invalid_ip")))
            self.assertAlmostEqual(self.failure(client.health).retry_after or 0, 300, delta=5, msg=value)

    def test_odd_headers_and_bodies_are_failures_of_the_call(self) -> None:
        for value in ("\xb2", "Mon, 01 Jan 2026 00:00:00 +999999999999999"):
            client = self.serve((400, {"Retry-After": value, "Date": value}, error("invalid_ip")))
            self.assertIsNone(self.failure(client.health).retry_after)
        client = self.serve((400, {}, b"[" * 200_000))
        self.assertEqual(self.failure(client.health).status, 400)

    def test_an_id_cannot_make_another_path(self) -> None:
        client = self.serve((404, {}, error("session_not_found")))
        for wrong in ("", ".", ".."):
            with self.assertRaises(ValueError):
                client.session(wrong)
        self.failure(lambda: client.session("a/b?c"))
        self.assertEqual(self.methods(), ["GET /v1/sessions/a%2Fb%3Fc"])

    def test_an_answer_that_is_no_json_is_told_as_such(self) -> None:
        client = self.serve((403, {}, b"<html>"))
        failed = self.failure(client.usage)
        self.assertEqual((failed.status, failed.code, failed.outcome), (403, None, "refused"))

    def test_a_recovery_takes_an_aware_datetime_and_is_repeated_after_a_lost_connection(self) -> None:
        started = {"recovery_id": "r1", "deliveries": 2, "status_url": "/v1/webhooks/w1/recoveries/r1"}
        client = self.serve(None, (202, {}, started), (200, {}, {"recovery_id": "r1", "pending": 0}))
        since = datetime(2026, 3, 14, 23, 0, tzinfo=timezone(timedelta(hours=1)))
        self.assertEqual(client.webhooks.recover("w1", since), started)
        self.assertEqual(client.webhooks.recovery("w1", "r1")["pending"], 0)
        self.assertEqual(self.methods(), ["POST /v1/webhooks/w1/recover"] * 2 + ["GET /v1/webhooks/w1/recoveries/r1"])
        self.assertEqual(self.service.requests[0]["body"], {"since": "2026-03-14T22:00:00.000Z"})
        with self.assertRaises(ValueError):
            client.webhooks.recover("w1", datetime(2026, 3, 14))


if __name__ == "__main__":
    unittest.main()
