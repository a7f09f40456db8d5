"""The shapes of the API, made from its OpenAPI document by generate.ts."""

from typing import Any, Literal, TypedDict, Union


class LookupRequest(TypedDict):
    ip: str


class _TrackerCreateRequired(TypedDict):
    name: str
    origins: list[str]


class TrackerCreate(_TrackerCreateRequired, total=False):
    customer_reference: Union[str, None]


class TrackerUpdate(TypedDict, total=False):
    name: str
    origins: list[str]
    customer_reference: Union[str, None]


class CustomDomainCreate(TypedDict):
    hostname: str


class _CaptureRequired(TypedDict):
    tracker_id: str
    token: str
    visit_id: str


class Capture(_CaptureRequired, total=False):
    custom: "CustomParameters"


class _WebhookCreateRequired(TypedDict):
    name: str
    url: str
    events: list[Literal["session.created", "reveal.completed"]]


class WebhookCreate(_WebhookCreateRequired, total=False):
    tracker_id: Union[str, None]


class WebhookUpdate(TypedDict, total=False):
    name: str
    events: list[Literal["session.created", "reveal.completed"]]
    enabled: bool


class WebhookRecover(TypedDict):
    since: str


class SessionCreatedEvent(TypedDict):
    id: str
    type: Literal["session.created"]
    schema_version: Literal[1]
    created_at: str
    data: "SessionPreview"


class _SessionPreviewRequired(TypedDict):
    session_id: str
    tracker_id: str
    customer_reference: Union[str, None]
    visitor_country: Union[str, None]
    first_seen_at: str
    last_seen_at: str
    expires_at: str


class SessionPreview(_SessionPreviewRequired, total=False):
    custom: "CustomParameters"
    request_id: str


class RevealCompletedEvent(TypedDict):
    id: str
    type: Literal["reveal.completed"]
    schema_version: Literal[1]
    created_at: str
    data: "CompletedReveal"


class _CompletedRevealRequired(TypedDict):
    reveal_id: str
    session_id: str
    tracker_id: str
    status: Literal["complete"]
    billable: bool
    billable_units: Union[Literal[0], Literal[1]]
    created_at: str
    completed_at: str
    expires_at: str
    result: "RevealResult"
    status_url: str


class CompletedReveal(_CompletedRevealRequired, total=False):
    custom: "CustomParameters"


class RevealResult(TypedDict):
    status: Literal["complete"]
    match_type: "MatchType"
    company_found: bool
    enriched_at: Union[str, None]
    stale: bool
    fresh_until: Union[str, None]
    refresh_status: "RefreshStatus"
    refresh_error: "RefreshError"
    network: "Network"
    company: Union["Company", None]


class Network(TypedDict):
    connection_type: Union[str, None]
    audience_type: Union[str, None]
    audience_group: Union[str, None]
    detail_level: Union[str, None]
    is_isp: Union[bool, None]


class Company(TypedDict):
    name: Union[str, None]
    website: Union[str, None]
    brand_name: Union[str, None]
    linkedin_url: Union[str, None]
    industry: Union[str, None]
    industry_subcategory: Union[str, None]
    employees: Union[str, int, None]
    revenue_band: Union[str, None]
    annual_revenue: Union[str, int, None]
    naics_code: Union[str, None]
    sic_code: Union[str, None]
    city: Union[str, None]
    region: Union[str, None]
    postal_code: Union[str, None]
    country_code: Union[str, None]
    country_name: Union[str, None]


class WebhookTestEventData(TypedDict):
    message: str


class WebhookTestEvent(TypedDict):
    id: str
    type: Literal["webhook.test"]
    schema_version: Literal[1]
    created_at: str
    data: "WebhookTestEventData"


class _LookupRequired(TypedDict):
    ip: str
    matched_ip: str
    status: Literal["complete"]
    match_type: "MatchType"
    company_found: bool
    enriched_at: Union[str, None]
    stale: bool
    fresh_until: Union[str, None]
    refresh_status: "RefreshStatus"
    refresh_error: "RefreshError"
    network: "Network"
    company: Union["Company", None]
    request_id: str


class Lookup(_LookupRequired, total=False):
    company_signals: "CompanySignals"


class CompanySignals(TypedDict):
    status: Literal["available", "unavailable"]
    window_days: Literal[30]
    truncated: bool
    candidates: list["CompanyCandidate"]


class CompanyCandidate(TypedDict):
    domain: str
    company: Union["Company", None]
    verified: Literal[False]
    evidence: Literal["submitted", "field_only"]
    first_seen_at: str
    last_seen_at: str
    observations: int
    submitted_observations: int
    observed_visits: int
    sites: int
    flags: list[str]


class _PendingRequired(TypedDict):
    ip: str
    lookup_ip: str
    status: Literal["pending", "retrying"]
    company_found: None
    company: None
    submitted_at: str
    attempts: int
    next_retry_at: Union[str, None]
    last_error: Union[Literal["lookup_failed"], None]
    status_url: str
    poll_after_seconds: int
    request_id: str


class Pending(_PendingRequired, total=False):
    company_signals: "CompanySignals"


class ErrorError(TypedDict):
    code: str
    message: str


class _ErrorRequired(TypedDict):
    error: "ErrorError"
    request_id: str


class Error(_ErrorRequired, total=False):
    company_signals: "CompanySignals"


class UsageLimits(TypedDict):
    requests_per_second: int
    new_enrichments_per_day: Union[int, None]
    pending_enrichments: int


class UsageTotals(TypedDict):
    requests: int
    cache_hits: int
    average_processing_ms: float


class UsageHourlyItem(TypedDict):
    hour: str
    outcome: "UsageOutcome"
    requests: int
    cache_hits: int
    duration_ms: float


_UsageRequired = TypedDict(
    "_UsageRequired",
    {
        "key_id": str,
        "name": str,
        "from": str,
        "to": str,
        "timezone": Literal["UTC"],
        "limits": "UsageLimits",
        "totals": "UsageTotals",
        "outcomes": dict[str, int],
        "hourly": list["UsageHourlyItem"],
        "enrichment": "EnrichmentStatus",
        "accounting": str,
    },
)


class Usage(_UsageRequired, total=False):
    reveals: "RevealUsage"


class EnrichmentStatus(TypedDict):
    pending: int
    submission_unconfirmed: int
    retrying: int
    oldest_pending_at: Union[str, None]
    oldest_checked_at: Union[str, None]
    completed_observed_last_minute: int


class RevealUsageHourlyItem(TypedDict):
    hour: str
    billable_reveals: int
    completed_reveals: int


class RevealUsage(TypedDict):
    billable_reveals: int
    completed_reveals: int
    hourly: list["RevealUsageHourlyItem"]
    accounting: str


class LedgerPageTotals(TypedDict):
    entries: int
    units: int


class LedgerPageHead(TypedDict):
    number: int
    digest: str


class LedgerPage(TypedDict):
    month: str
    entries: list["LedgerEntry"]
    totals: "LedgerPageTotals"
    head: Union["LedgerPageHead", None]
    anchor: Union["LedgerAnchor", None]
    next_cursor: str
    has_more: bool
    request_id: str


class LedgerEntry(TypedDict):
    number: int
    partner_id: str
    reveal_id: str
    tracker_id: str
    key_id: Union[str, None]
    user_id: Union[str, None]
    completed_at: str
    units: Union[Literal[0], Literal[1]]
    position: str
    previous: str
    digest: str


class LedgerAnchor(TypedDict):
    partner_id: str
    made_at: str
    entries: int
    units: int
    head_digest: str
    signature: str
    public_key: str


class TrackerList(TypedDict):
    trackers: list["Tracker"]
    request_id: str


class _TrackerRequired(TypedDict):
    id: str
    name: str
    origins: list[str]
    customer_reference: Union[str, None]
    created_at: str
    disabled_at: Union[str, None]
    snippet: str


class Tracker(_TrackerRequired, total=False):
    request_id: str


class TrackerDeleted(TypedDict):
    id: str
    deleted: Literal[True]
    deleted_at: str
    request_id: str


class TrackerUsageTotals(TypedDict):
    capture_requests: int
    sessions: int
    api_requests: int
    completed_responses: int
    company_responses: int
    reveals: int
    billable_reveals: int


class TrackerUsageHourlyItem(TypedDict):
    hour: str
    capture_requests: int
    sessions: int
    api_requests: int
    completed_responses: int
    company_responses: int
    reveals: int
    billable_reveals: int


_TrackerUsageRequired = TypedDict(
    "_TrackerUsageRequired",
    {
        "tracker_id": str,
        "from": str,
        "to": str,
        "timezone": Literal["UTC"],
        "totals": "TrackerUsageTotals",
        "hourly": list["TrackerUsageHourlyItem"],
        "pending_reveals": int,
        "metrics_started_at": str,
        "partial_history": bool,
        "accounting": str,
    },
)


class TrackerUsage(_TrackerUsageRequired, total=False):
    request_id: str


class CustomDomainList(TypedDict):
    domains: list["CustomDomain"]
    request_id: str


class CustomDomainVerification(TypedDict):
    type: Literal["TXT"]
    name: str
    value: str


class _CustomDomainRequired(TypedDict):
    id: str
    tracker_id: str
    hostname: str
    cname_target: str
    verification: Union["CustomDomainVerification", None]
    status: Literal["pending", "active", "failed"]
    created_at: str
    activated_at: Union[str, None]
    checked_at: Union[str, None]
    last_error: Union[str, None]
    snippet: Union[str, None]


class CustomDomain(_CustomDomainRequired, total=False):
    request_id: str


class CustomDomainDeleted(TypedDict):
    id: str
    deleted: Literal[True]
    deleted_at: str
    request_id: str


class SessionFeed(TypedDict):
    sessions: list["SessionPreview"]
    next_cursor: str
    has_more: bool
    request_id: str


class _RevealRequired(TypedDict):
    reveal_id: str
    session_id: str
    tracker_id: str
    status: Literal["pending", "complete"]
    billable: bool
    billable_units: Union[Literal[0], Literal[1]]
    created_at: str
    completed_at: Union[str, None]
    expires_at: str
    result: Union["RevealResult", None]
    status_url: str
    request_id: str


class Reveal(_RevealRequired, total=False):
    custom: "CustomParameters"


class WebhookList(TypedDict):
    webhooks: list["Webhook"]
    limits: "WebhookLimits"
    worker: "WebhookWorker"
    request_id: str


class _WebhookRequired(TypedDict):
    id: str
    name: str
    url: str
    events: list[Literal["session.created", "reveal.completed"]]
    tracker_id: Union[str, None]
    enabled: bool
    created_at: str
    updated_at: str
    deleted_at: Union[str, None]
    secret_rotation_until: Union[str, None]
    deliveries: "WebhookDeliveryTotals"


class Webhook(_WebhookRequired, total=False):
    request_id: str


class WebhookDeliveryTotals(TypedDict):
    pending: int
    delivered: int
    failed: int
    cancelled: int
    expired: int


class WebhookLimits(TypedDict):
    endpoints: int
    management_per_minute: int
    pending_deliveries: int
    concurrent_per_endpoint: int
    starts_per_second_per_endpoint: int
    event_bytes: int
    timeout_seconds: int
    attempts: int
    retry_days: int


class WebhookWorker(TypedDict):
    status: Literal["running", "stalled", "stopped"]
    last_seen_at: Union[str, None]
    due: int
    oldest_due_at: Union[str, None]


class _WebhookSecretRequired(TypedDict):
    id: str
    name: str
    url: str
    events: list[Literal["session.created", "reveal.completed"]]
    tracker_id: Union[str, None]
    enabled: bool
    created_at: str
    updated_at: str
    deleted_at: Union[str, None]
    secret_rotation_until: Union[str, None]
    deliveries: "WebhookDeliveryTotals"
    signing_secret: str


class WebhookSecret(_WebhookSecretRequired, total=False):
    request_id: str


class WebhookDeleted(TypedDict):
    id: str
    deleted: Literal[True]
    deleted_at: str
    request_id: str


class WebhookTest(TypedDict):
    delivery_id: str
    event_id: str
    status: Literal["pending"]
    request_id: str


class WebhookDeliveryList(TypedDict):
    deliveries: list["WebhookDelivery"]
    has_more: bool
    next_cursor: str
    request_id: str


class WebhookDelivery(TypedDict):
    id: str
    event_id: str
    type: Literal["session.created", "reveal.completed", "webhook.test"]
    state: Literal["pending", "delivered", "failed", "cancelled", "expired"]
    attempts: int
    created_at: str
    last_attempt_at: Union[str, None]
    delivered_at: Union[str, None]
    next_attempt_at: Union[str, None]
    http_status: Union[int, None]
    error: Union[Literal["timeout", "dns", "connect", "tls", "blocked_address", "redirect", "http_status", "own_origin"], None]


class _WebhookDeliveryDetailRequired(TypedDict):
    id: str
    event_id: str
    type: Literal["session.created", "reveal.completed", "webhook.test"]
    state: Literal["pending", "delivered", "failed", "cancelled", "expired"]
    attempts: int
    created_at: str
    last_attempt_at: Union[str, None]
    delivered_at: Union[str, None]
    next_attempt_at: Union[str, None]
    http_status: Union[int, None]
    error: Union[Literal["timeout", "dns", "connect", "tls", "blocked_address", "redirect", "http_status", "own_origin"], None]
    event: Union["WebhookEvent", None]


class WebhookDeliveryDetail(_WebhookDeliveryDetailRequired, total=False):
    request_id: str


class WebhookRecoveryStarted(TypedDict):
    recovery_id: str
    deliveries: int
    status_url: str
    request_id: str


class WebhookRecovery(TypedDict):
    recovery_id: str
    since: str
    deliveries: int
    pending: int
    delivered: int
    failed: int
    cancelled: int
    expired: int
    created_at: str
    request_id: str


class Health(TypedDict):
    status: Literal["ok"]


CustomParameters = dict[str, Union[str, float, bool, None]]
MatchType = Literal["company", "isp", "unclassified"]
RefreshStatus = Literal["not_needed", "not_requested", "pending", "deferred"]
RefreshError = Union[Literal["pending_limit", "enrichment_limit", "enrichment_capacity", "submission_unconfirmed", "lookup_failed"], None]
UsageOutcome = Literal["company", "isp", "unclassified", "enqueued", "pending", "retrying", "invalid_request", "rate_limited", "error"]
WebhookEvent = Union["SessionCreatedEvent", "RevealCompletedEvent", "WebhookTestEvent"]
