"""The shapes of the API, made from its OpenAPI document by generate.ts."""

from typing import Any, Literal, TypedDict, Union


class _CaptureRequired(TypedDict):
    token: str
    tracker_id: str
    visit_id: str


class Capture(_CaptureRequired, total=False):
    custom: "CustomParameters"


class Company(TypedDict):
    annual_revenue: Union[str, int, None]
    brand_name: Union[str, None]
    city: Union[str, None]
    country_code: Union[str, None]
    country_name: Union[str, None]
    employees: Union[str, int, None]
    industry: Union[str, None]
    industry_subcategory: Union[str, None]
    linkedin_url: Union[str, None]
    naics_code: Union[str, None]
    name: Union[str, None]
    postal_code: Union[str, None]
    region: Union[str, None]
    revenue_band: Union[str, None]
    sic_code: Union[str, None]
    website: Union[str, None]


class CompanyCandidate(TypedDict):
    company: Union["Company", None]
    domain: str
    evidence: Literal["submitted", "field_only"]
    first_seen_at: str
    flags: list[str]
    last_seen_at: str
    observations: int
    observed_visits: int
    sites: int
    submitted_observations: int
    verified: Literal[False]


class CompanySignals(TypedDict):
    candidates: list["CompanyCandidate"]
    status: Literal["available", "unavailable"]
    truncated: bool
    window_days: Literal[30]


class _CompletedRevealRequired(TypedDict):
    billable: bool
    billable_units: Union[Literal[0], Literal[1]]
    completed_at: str
    created_at: str
    expires_at: str
    result: "RevealResult"
    reveal_id: str
    session_id: str
    status: Literal["complete"]
    status_url: str
    tracker_id: str


class CompletedReveal(_CompletedRevealRequired, total=False):
    custom: "CustomParameters"


class CustomDomainVerification(TypedDict):
    name: str
    type: Literal["TXT"]
    value: str


class _CustomDomainRequired(TypedDict):
    activated_at: Union[str, None]
    checked_at: Union[str, None]
    cname_target: str
    created_at: str
    hostname: str
    id: str
    last_error: Union[str, None]
    snippet: Union[str, None]
    status: Literal["pending", "active", "failed"]
    tracker_id: str
    verification: Union["CustomDomainVerification", None]


class CustomDomain(_CustomDomainRequired, total=False):
    request_id: str


class CustomDomainCreate(TypedDict):
    hostname: str


class CustomDomainDeleted(TypedDict):
    deleted: Literal[True]
    deleted_at: str
    id: str
    request_id: str


class CustomDomainList(TypedDict):
    domains: list["CustomDomain"]
    request_id: str


class EnrichmentStatus(TypedDict):
    completed_observed_last_minute: int
    oldest_checked_at: Union[str, None]
    oldest_pending_at: Union[str, None]
    pending: int
    retrying: int
    submission_unconfirmed: int


class ErrorError(TypedDict):
    code: str
    message: str


class _ErrorRequired(TypedDict):
    error: "ErrorError"
    request_id: str


class Error(_ErrorRequired, total=False):
    company_signals: "CompanySignals"


class Health(TypedDict):
    status: Literal["ok"]


class LedgerAnchor(TypedDict):
    entries: int
    head_digest: str
    made_at: str
    partner_id: str
    public_key: str
    signature: str
    units: int


class LedgerEntry(TypedDict):
    completed_at: str
    digest: str
    key_id: Union[str, None]
    number: int
    partner_id: str
    position: str
    previous: str
    reveal_id: str
    tracker_id: str
    units: Union[Literal[0], Literal[1]]
    user_id: Union[str, None]


class LedgerPageHead(TypedDict):
    digest: str
    number: int


class LedgerPageTotals(TypedDict):
    entries: int
    units: int


class LedgerPage(TypedDict):
    anchor: Union["LedgerAnchor", None]
    entries: list["LedgerEntry"]
    has_more: bool
    head: Union["LedgerPageHead", None]
    month: str
    next_cursor: str
    request_id: str
    totals: "LedgerPageTotals"


class _LookupRequired(TypedDict):
    company: Union["Company", None]
    company_found: bool
    enriched_at: Union[str, None]
    fresh_until: Union[str, None]
    ip: str
    match_type: "MatchType"
    matched_ip: str
    network: "Network"
    refresh_error: "RefreshError"
    refresh_status: "RefreshStatus"
    request_id: str
    stale: bool
    status: Literal["complete"]


class Lookup(_LookupRequired, total=False):
    company_signals: "CompanySignals"


class LookupRequest(TypedDict):
    ip: str


class Network(TypedDict):
    audience_group: Union[str, None]
    audience_type: Union[str, None]
    connection_type: Union[str, None]
    detail_level: Union[str, None]
    is_isp: Union[bool, None]


class _PendingRequired(TypedDict):
    attempts: int
    company: None
    company_found: None
    ip: str
    last_error: Union[Literal["lookup_failed"], None]
    lookup_ip: str
    next_retry_at: Union[str, None]
    poll_after_seconds: int
    request_id: str
    status: Literal["pending", "retrying"]
    status_url: str
    submitted_at: str


class Pending(_PendingRequired, total=False):
    company_signals: "CompanySignals"


class _RevealRequired(TypedDict):
    billable: bool
    billable_units: Union[Literal[0], Literal[1]]
    completed_at: Union[str, None]
    created_at: str
    expires_at: str
    request_id: str
    result: Union["RevealResult", None]
    reveal_id: str
    session_id: str
    status: Literal["pending", "complete"]
    status_url: str
    tracker_id: str


class Reveal(_RevealRequired, total=False):
    custom: "CustomParameters"


class RevealCompletedEvent(TypedDict):
    created_at: str
    data: "CompletedReveal"
    id: str
    schema_version: Literal[1]
    type: Literal["reveal.completed"]


class RevealResult(TypedDict):
    company: Union["Company", None]
    company_found: bool
    enriched_at: Union[str, None]
    fresh_until: Union[str, None]
    match_type: "MatchType"
    network: "Network"
    refresh_error: "RefreshError"
    refresh_status: "RefreshStatus"
    stale: bool
    status: Literal["complete"]


class RevealUsageHourlyItem(TypedDict):
    billable_reveals: int
    completed_reveals: int
    hour: str


class RevealUsage(TypedDict):
    accounting: str
    billable_reveals: int
    completed_reveals: int
    hourly: list["RevealUsageHourlyItem"]


class SessionCreatedEvent(TypedDict):
    created_at: str
    data: "SessionPreview"
    id: str
    schema_version: Literal[1]
    type: Literal["session.created"]


class SessionFeed(TypedDict):
    has_more: bool
    next_cursor: str
    request_id: str
    sessions: list["SessionPreview"]


class _SessionPreviewRequired(TypedDict):
    customer_reference: Union[str, None]
    expires_at: str
    first_seen_at: str
    last_seen_at: str
    session_id: str
    tracker_id: str
    visitor_country: Union[str, None]


class SessionPreview(_SessionPreviewRequired, total=False):
    custom: "CustomParameters"
    request_id: str


class _TrackerRequired(TypedDict):
    created_at: str
    customer_reference: Union[str, None]
    disabled_at: Union[str, None]
    id: str
    name: str
    origins: list[str]
    snippet: str


class Tracker(_TrackerRequired, total=False):
    request_id: str


class _TrackerCreateRequired(TypedDict):
    name: str
    origins: list[str]


class TrackerCreate(_TrackerCreateRequired, total=False):
    customer_reference: Union[str, None]


class TrackerDeleted(TypedDict):
    deleted: Literal[True]
    deleted_at: str
    id: str
    request_id: str


class TrackerList(TypedDict):
    request_id: str
    trackers: list["Tracker"]


class TrackerUpdate(TypedDict, total=False):
    customer_reference: Union[str, None]
    name: str
    origins: list[str]


class TrackerUsageHourlyItem(TypedDict):
    api_requests: int
    billable_reveals: int
    capture_requests: int
    company_responses: int
    completed_responses: int
    hour: str
    reveals: int
    sessions: int


class TrackerUsageTotals(TypedDict):
    api_requests: int
    billable_reveals: int
    capture_requests: int
    company_responses: int
    completed_responses: int
    reveals: int
    sessions: int


_TrackerUsageRequired = TypedDict(
    "_TrackerUsageRequired",
    {
        "accounting": str,
        "from": str,
        "hourly": list["TrackerUsageHourlyItem"],
        "metrics_started_at": str,
        "partial_history": bool,
        "pending_reveals": int,
        "timezone": Literal["UTC"],
        "to": str,
        "totals": "TrackerUsageTotals",
        "tracker_id": str,
    },
)


class TrackerUsage(_TrackerUsageRequired, total=False):
    request_id: str


class UsageHourlyItem(TypedDict):
    cache_hits: int
    duration_ms: float
    hour: str
    outcome: "UsageOutcome"
    requests: int


class UsageLimits(TypedDict):
    new_enrichments_per_day: Union[int, None]
    pending_enrichments: int
    requests_per_second: int


class UsageTotals(TypedDict):
    average_processing_ms: float
    cache_hits: int
    requests: int


_UsageRequired = TypedDict(
    "_UsageRequired",
    {
        "accounting": str,
        "enrichment": "EnrichmentStatus",
        "from": str,
        "hourly": list["UsageHourlyItem"],
        "key_id": str,
        "limits": "UsageLimits",
        "name": str,
        "outcomes": dict[str, int],
        "timezone": Literal["UTC"],
        "to": str,
        "totals": "UsageTotals",
    },
)


class Usage(_UsageRequired, total=False):
    reveals: "RevealUsage"


class _WebhookRequired(TypedDict):
    created_at: str
    deleted_at: Union[str, None]
    deliveries: "WebhookDeliveryTotals"
    enabled: bool
    events: list[Literal["session.created", "reveal.completed"]]
    id: str
    name: str
    secret_rotation_until: Union[str, None]
    tracker_id: Union[str, None]
    updated_at: str
    url: str


class Webhook(_WebhookRequired, total=False):
    request_id: str


class _WebhookCreateRequired(TypedDict):
    events: list[Literal["session.created", "reveal.completed"]]
    name: str
    url: str


class WebhookCreate(_WebhookCreateRequired, total=False):
    tracker_id: Union[str, None]


class WebhookDeleted(TypedDict):
    deleted: Literal[True]
    deleted_at: str
    id: str
    request_id: str


class WebhookDelivery(TypedDict):
    attempts: int
    created_at: str
    delivered_at: Union[str, None]
    error: Union[Literal["timeout", "dns", "connect", "tls", "blocked_address", "redirect", "http_status", "own_origin"], None]
    event_id: str
    http_status: Union[int, None]
    id: str
    last_attempt_at: Union[str, None]
    next_attempt_at: Union[str, None]
    state: Literal["pending", "delivered", "failed", "cancelled", "expired"]
    type: Literal["session.created", "reveal.completed", "webhook.test"]


class _WebhookDeliveryDetailRequired(TypedDict):
    attempts: int
    created_at: str
    delivered_at: Union[str, None]
    error: Union[Literal["timeout", "dns", "connect", "tls", "blocked_address", "redirect", "http_status", "own_origin"], None]
    event: Union["WebhookEvent", None]
    event_id: str
    http_status: Union[int, None]
    id: str
    last_attempt_at: Union[str, None]
    next_attempt_at: Union[str, None]
    state: Literal["pending", "delivered", "failed", "cancelled", "expired"]
    type: Literal["session.created", "reveal.completed", "webhook.test"]


class WebhookDeliveryDetail(_WebhookDeliveryDetailRequired, total=False):
    request_id: str


class WebhookDeliveryList(TypedDict):
    deliveries: list["WebhookDelivery"]
    has_more: bool
    next_cursor: str
    request_id: str


class WebhookDeliveryTotals(TypedDict):
    cancelled: int
    delivered: int
    expired: int
    failed: int
    pending: int


class WebhookLimits(TypedDict):
    attempts: int
    concurrent_per_endpoint: int
    endpoints: int
    event_bytes: int
    management_per_minute: int
    pending_deliveries: int
    retry_days: int
    starts_per_second_per_endpoint: int
    timeout_seconds: int


class WebhookList(TypedDict):
    limits: "WebhookLimits"
    request_id: str
    webhooks: list["Webhook"]
    worker: "WebhookWorker"


class WebhookRecover(TypedDict):
    since: str


class WebhookRecovery(TypedDict):
    cancelled: int
    created_at: str
    delivered: int
    deliveries: int
    expired: int
    failed: int
    pending: int
    recovery_id: str
    request_id: str
    since: str


class WebhookRecoveryStarted(TypedDict):
    deliveries: int
    recovery_id: str
    request_id: str
    status_url: str


class _WebhookSecretRequired(TypedDict):
    created_at: str
    deleted_at: Union[str, None]
    deliveries: "WebhookDeliveryTotals"
    enabled: bool
    events: list[Literal["session.created", "reveal.completed"]]
    id: str
    name: str
    secret_rotation_until: Union[str, None]
    signing_secret: str
    tracker_id: Union[str, None]
    updated_at: str
    url: str


class WebhookSecret(_WebhookSecretRequired, total=False):
    request_id: str


class WebhookTest(TypedDict):
    delivery_id: str
    event_id: str
    request_id: str
    status: Literal["pending"]


class WebhookTestEventData(TypedDict):
    message: str


class WebhookTestEvent(TypedDict):
    created_at: str
    data: "WebhookTestEventData"
    id: str
    schema_version: Literal[1]
    type: Literal["webhook.test"]


class WebhookUpdate(TypedDict, total=False):
    enabled: bool
    events: list[Literal["session.created", "reveal.completed"]]
    name: str


class WebhookWorker(TypedDict):
    due: int
    last_seen_at: Union[str, None]
    oldest_due_at: Union[str, None]
    status: Literal["running", "stalled", "stopped"]


CustomParameters = dict[str, Union[str, float, bool, None]]
MatchType = Literal["company", "isp", "unclassified"]
RefreshError = Union[Literal["pending_limit", "enrichment_limit", "enrichment_capacity", "submission_unconfirmed", "lookup_failed"], None]
RefreshStatus = Literal["not_needed", "not_requested", "pending", "deferred"]
UsageOutcome = Literal["company", "isp", "unclassified", "enqueued", "pending", "retrying", "invalid_request", "rate_limited", "error"]
WebhookEvent = Union["SessionCreatedEvent", "RevealCompletedEvent", "WebhookTestEvent"]
