import base64
import hashlib
import hmac
import json
import unittest

from doorplate_client import WebhookVerificationError, verify_webhook

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
NOW = 1_700_000_000
BODY = json.dumps({"id": "evt_test_1", "type": "webhook.test", "data": {"message": "é"}}).encode()


def signature(secret: str, body: bytes, event_id: str = "evt_test_1", at: int = NOW) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{event_id}.{at}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def headers(secret: str = SECRET, body: bytes = BODY, event_id: str = "evt_test_1", at: int = NOW) -> dict[str, str]:
    return {
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": signature(secret, body, event_id, at),
    }


class VerifyWebhookTest(unittest.TestCase):
    def fault(self, *args: object, **kwargs: object) -> str:
        with self.assertRaises(WebhookVerificationError) as raised:
            verify_webhook(*args, **{"now": NOW, **kwargs})  # type: ignore[arg-type]
        return raised.exception.fault

    def test_returns_the_event_of_a_signed_request(self) -> None:
        for given in (headers(), list(headers().items())):
            self.assertEqual(verify_webhook(SECRET, given, BODY, now=NOW)["type"], "webhook.test")

    def test_takes_either_secret_during_a_rotation(self) -> None:
        both = {**headers(), "Webhook-Signature": f"{signature(OTHER, BODY)} {signature(SECRET, BODY)}"}
        for secret in (SECRET, OTHER, [OTHER, SECRET]):
            verify_webhook(secret, both, BODY, now=NOW)

    def test_refuses_a_changed_body_another_secret_and_another_id(self) -> None:
        self.assertEqual(self.fault(SECRET, headers(), BODY + b" "), "signature")
        self.assertEqual(self.fault(OTHER, headers(), BODY), "signature")
        self.assertEqual(self.fault(SECRET, headers(event_id="evt_test_2"), BODY), "event")
        self.assertEqual(self.fault(SECRET, headers(body=b"{"), b"{"), "event")

    def test_says_that_the_raw_body_is_needed(self) -> None:
        with self.assertRaisesRegex(TypeError, r"body is a dict: .*request\.get_data\(\)"):
            verify_webhook(SECRET, headers(), json.loads(BODY), now=NOW)
        with self.assertRaisesRegex(WebhookVerificationError, r"serialised again, .*request\.body"):
            verify_webhook(SECRET, headers(), json.dumps(json.loads(BODY), indent=1), now=NOW)

    def test_refuses_what_is_older_or_newer_than_five_minutes(self) -> None:
        for at in (NOW - 301, NOW + 301):
            self.assertEqual(self.fault(SECRET, headers(at=at), BODY), "timestamp")
        verify_webhook(SECRET, headers(at=NOW - 300), BODY, now=NOW)

    def test_refuses_missing_malformed_and_doubled_headers(self) -> None:
        for name in headers():
            self.assertEqual(self.fault(SECRET, {**headers(), name: ""}, BODY), "headers")
            self.assertEqual(self.fault(SECRET, [*headers().items(), (name.lower(), headers()[name])], BODY), "headers")

    def test_refuses_a_secret_that_is_none(self) -> None:
        for wrong in ("", "whsec_", "whsec_c2hvcnQ=", []):
            with self.assertRaises(ValueError):
                verify_webhook(wrong, headers(), BODY, now=NOW)


if __name__ == "__main__":
    unittest.main()
