"""A client for Doorplate: calls of its API with a partner's key, and verification of its webhooks."""

from .client import Client, Feed, Page, Revealed, new_idempotency_key
from .errors import DoorplateError, WebhookVerificationError
from .ledger import LedgerDifference, LedgerHead, LedgerMonth, LedgerProof
from .lookup_many import LookedUp, LookupMany, LookupProgress, Waiting
from .webhooks import verify_webhook

__all__ = [
    "Client",
    "DoorplateError",
    "Feed",
    "LedgerDifference",
    "LedgerHead",
    "LedgerMonth",
    "LedgerProof",
    "LookedUp",
    "LookupMany",
    "LookupProgress",
    "Page",
    "Revealed",
    "Waiting",
    "WebhookVerificationError",
    "new_idempotency_key",
    "verify_webhook",
]
