// Made from the OpenAPI document by generate-typescript.ts: never edited by hand.

/** Where each operation is. */
export const endpoints = {
  readHealth: ['GET', '/healthz'],
  readLedger: ['GET', '/v1/ledger'],
  readLookup: ['GET', '/v1/lookup'],
  requestLookup: ['POST', '/v1/lookup'],
  getReveal: ['GET', '/v1/reveals/{reveal_id}'],
  listSessions: ['GET', '/v1/sessions'],
  previewSession: ['GET', '/v1/sessions/{session_id}'],
  revealSession: ['POST', '/v1/sessions/{session_id}/reveal'],
  listTrackers: ['GET', '/v1/trackers'],
  createTracker: ['POST', '/v1/trackers'],
  disableTracker: ['DELETE', '/v1/trackers/{tracker_id}'],
  updateTracker: ['PATCH', '/v1/trackers/{tracker_id}'],
  deleteTracker: ['POST', '/v1/trackers/{tracker_id}/delete'],
  listDomains: ['GET', '/v1/trackers/{tracker_id}/domains'],
  createDomain: ['POST', '/v1/trackers/{tracker_id}/domains'],
  deleteDomain: ['DELETE', '/v1/trackers/{tracker_id}/domains/{domain_id}'],
  getDomain: ['GET', '/v1/trackers/{tracker_id}/domains/{domain_id}'],
  enableTracker: ['POST', '/v1/trackers/{tracker_id}/enable'],
  readTrackerUsage: ['GET', '/v1/trackers/{tracker_id}/usage'],
  readUsage: ['GET', '/v1/usage'],
  listWebhooks: ['GET', '/v1/webhooks'],
  createWebhook: ['POST', '/v1/webhooks'],
  deleteWebhook: ['DELETE', '/v1/webhooks/{webhook_id}'],
  getWebhook: ['GET', '/v1/webhooks/{webhook_id}'],
  updateWebhook: ['PATCH', '/v1/webhooks/{webhook_id}'],
  listWebhookDeliveries: ['GET', '/v1/webhooks/{webhook_id}/deliveries'],
  getWebhookDelivery: ['GET', '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}'],
  retryWebhookDelivery: ['POST', '/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry'],
  recoverWebhook: ['POST', '/v1/webhooks/{webhook_id}/recover'],
  getWebhookRecovery: ['GET', '/v1/webhooks/{webhook_id}/recoveries/{recovery_id}'],
  rotateWebhookSecret: ['POST', '/v1/webhooks/{webhook_id}/rotate-secret'],
  testWebhook: ['POST', '/v1/webhooks/{webhook_id}/test'],
} as const;

/** The codes that the service refuses with. */
export type ErrorCode =
  /** The IP is missing, malformed, private or reserved; send one public address. */
  | 'invalid_ip'
  /** The query parameters do not match the endpoint. */
  | 'invalid_query'
  /** The body is not valid JSON. */
  | 'invalid_json'
  /** The body has the wrong shape or extra properties. */
  | 'invalid_body'
  /** The usage dates or parameters are invalid; send at most 31 real UTC days. */
  | 'invalid_range'
  /** The API key is missing, malformed, invalid, expired or revoked. */
  | 'unauthorized'
  /** Nothing is saved or submitted for this IP; POST to request enrichment. */
  | 'not_requested'
  /** The endpoint does not exist. */
  | 'not_found'
  /** The method is not accepted here; see the Allow header. */
  | 'method_not_allowed'
  /** The body exceeds the limit of the endpoint. */
  | 'body_too_large'
  /** The URL exceeds 512 characters. */
  | 'uri_too_long'
  /** The Content-Type is not application/json. */
  | 'unsupported_media_type'
  /** The request has a Content-Encoding header; send the body as it is. */
  | 'unsupported_encoding'
  /** This key exceeded its request rate. */
  | 'rate_limit'
  /** The shared API request capacity is reached. */
  | 'api_rate_limit'
  /** Too many distinct IP lookups are in flight. */
  | 'lookup_capacity'
  /** The partner reached its limit of unfinished enrichments; saved lookups still work. */
  | 'pending_limit'
  /** The key used its daily allowance of new enrichments; wait for the next UTC day. */
  | 'enrichment_limit'
  /** The shared enrichment intake is full; repeating does not speed it up. */
  | 'enrichment_capacity'
  /** The service is temporarily busy. */
  | 'api_busy'
  /** The request could not be completed; a POST may still have submitted. Repeat it. */
  | 'backend_unavailable'
  /** The request took too long; this is not a no-company result. */
  | 'backend_timeout'
  /** A reservation exists but is unconfirmed; repeat the POST, then poll. */
  | 'submission_unconfirmed'
  /** The work is complete but its saved lookup is unavailable; retry later. */
  | 'lookup_reconciliation_required'
  /** Usage reporting is unavailable; a POST may already be submitted. */
  | 'usage_unavailable'
  /** An unexpected temporary failure. */
  | 'service_unavailable'
  /** An origin is not a serialised https origin, or is listed twice. */
  | 'invalid_origin'
  /** A tracker id or field is invalid. */
  | 'invalid_tracker'
  /** The captured visit is invalid. */
  | 'invalid_capture'
  /** The custom labels are not a flat object within the limits. */
  | 'invalid_custom_parameters'
  /** The cursor was not given by this list, or belongs to another filter. */
  | 'invalid_cursor'
  /** The Idempotency-Key header is missing or no UUID v4. */
  | 'invalid_idempotency_key'
  /** The visit was sent to a host that does not collect for this tracker. */
  | 'untrusted_collector'
  /** The tracker does not collect from this origin; check origins and enabled state. */
  | 'tracker_origin_denied'
  /** No such tracker; check the id and the partner account. */
  | 'tracker_not_found'
  /** No such session; check the id and the partner account. */
  | 'session_not_found'
  /** No such reveal; check the id and the partner account. */
  | 'reveal_not_found'
  /** The Idempotency-Key was used for another session; use a new one. */
  | 'idempotency_conflict'
  /** The tracker is disabled; enable it first. */
  | 'tracker_disabled'
  /** The tracker is deleted and cannot be enabled again. */
  | 'tracker_deleted'
  /** The session is no longer available. */
  | 'session_expired'
  /** The receipt is no longer available; billing counts remain. */
  | 'reveal_expired'
  /** Tracking capacity is reached; follow Retry-After. */
  | 'tracking_capacity'
  /** The partner has its 1,000 trackers; delete one first. */
  | 'tracker_limit'
  /** Tracking is unavailable; retry with the same Idempotency-Key or visit. */
  | 'tracking_unavailable'
  /** The reveal is unconfirmed; retry with the same Idempotency-Key. */
  | 'reveal_unconfirmed'
  /** A webhook field is invalid. */
  | 'invalid_webhook'
  /** The URL is not a public https URL on port 443. */
  | 'invalid_webhook_url'
  /** The query parameters or the cursor are invalid. */
  | 'invalid_webhook_query'
  /** No such webhook; check the id and the partner account. */
  | 'webhook_not_found'
  /** No such delivery; check the id and the partner account. */
  | 'webhook_delivery_not_found'
  /** The webhook is paused or deleted; enable it first. */
  | 'webhook_disabled'
  /** A secret rotation is running; wait for the overlap to end. */
  | 'webhook_rotation_pending'
  /** The payload of this event is no longer available. */
  | 'webhook_event_expired'
  /** The partner has all the webhooks it can have; delete one first. */
  | 'webhook_limit'
  /** Too many webhook management calls; follow Retry-After. */
  | 'webhook_management_limit'
  /** The delivery queue is full; nothing was queued. */
  | 'webhook_queue_full'
  /** Webhooks are unavailable; nothing was delivered. */
  | 'webhooks_unavailable'
  /** The host name is not one that a custom domain can have. */
  | 'invalid_domain'
  /** No such domain; check the ids and the partner account. */
  | 'domain_not_found'
  /** The host name belongs to another tracker. */
  | 'domain_taken'
  /** The tracker has all the domains it can have; delete one first. */
  | 'domain_limit';

export interface components {
    schemas: {
        /** @description One page view. */
        Capture: {
            custom?: components["schemas"]["CustomParameters"];
            /**
             * Format: uuid
             * @description The browser tab's, renewed after 30 minutes without a visit.
             */
            token: string;
            /** Format: uuid */
            tracker_id: string;
            /**
             * Format: uuid
             * @description New for each page view; the same again is a retry.
             */
            visit_id: string;
        };
        /** @description A company; null means unknown, never zero. */
        Company: {
            /** @description Currency and period are unspecified; may be a decimal string. */
            annual_revenue: string | number | null;
            /** @description A marketing or alternate name, not necessarily a registered brand. */
            brand_name: string | null;
            city: string | null;
            /** @description Of the headquarters, which may differ from a visitor's country. */
            country_code: string | null;
            country_name: string | null;
            /** @description A count or a range, as given; large counts may be decimal strings. */
            employees: string | number | null;
            industry: string | null;
            industry_subcategory: string | null;
            linkedin_url: string | null;
            naics_code: string | null;
            name: string | null;
            postal_code: string | null;
            region: string | null;
            revenue_band: string | null;
            sic_code: string | null;
            website: string | null;
        };
        /** @description A clue, not proof of a visitor's employer. */
        CompanyCandidate: {
            /** @description The one profile whose website has this hostname; null without or with several. */
            company: components["schemas"]["Company"] | null;
            /** @description An observed e-mail domain; never a whole address. */
            domain: string;
            /**
             * @description submitted: a submit event was seen; field_only: an e-mail field was.
             * @enum {string}
             */
            evidence: "submitted" | "field_only";
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            first_seen_at: string;
            /** @description Reasons for caution: `field_only`, `unmatched_domain`, `ambiguous_domain`, `differs_from_lookup`, `single_observation`. An empty list is not verification. */
            flags: string[];
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            last_seen_at: string;
            /** @description Distinct captured events. */
            observations: number;
            /** @description Distinct known page runs; 0: none recorded. */
            observed_visits: number;
            /** @description Distinct website and installation combinations. */
            sites: number;
            submitted_observations: number;
            /** @constant */
            verified: false;
        };
        /** @description Optional clues from the last 30 days, for enabled keys. */
        CompanySignals: {
            candidates: components["schemas"]["CompanyCandidate"][];
            /**
             * @description unavailable: not checked. An empty available list: no eligible recent clues.
             * @enum {string}
             */
            status: "available" | "unavailable";
            /** @description More evidence may exist than is returned. */
            truncated: boolean;
            /** @constant */
            window_days: 30;
        };
        /** @description The receipt of a reveal that is complete. */
        CompletedReveal: {
            /** @description Whether it has one recorded unit; reading it never charges. */
            billable: boolean;
            billable_units: 0 | 1;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            completed_at: string;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            custom?: components["schemas"]["CustomParameters"];
            /**
             * Format: date-time
             * @description The session's own.
             * @example 2026-03-14T09:26:53.589Z
             */
            expires_at: string;
            result: components["schemas"]["RevealResult"];
            /** Format: uuid */
            reveal_id: string;
            /** Format: uuid */
            session_id: string;
            /** @constant */
            status: "complete";
            /** @description Relative URL of the receipt. */
            status_url: string;
            /** Format: uuid */
            tracker_id: string;
        };
        /** @description A host name of a customer's own for a tracker's pixel. */
        CustomDomain: {
            activated_at: string | null;
            /** @description When it was last looked for. */
            checked_at: string | null;
            /**
             * @description What the host name's CNAME, or the last of a chain of them, must name.
             * @example doorplate.example
             */
            cname_target: string;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            /**
             * @description Lower case, IDNs as punycode, at least two labels, no trailing dot; no address.
             * @example visits.example.com
             */
            hostname: string;
            /** Format: uuid */
            id: string;
            /** @description Why it does not point here: `no_such_name`, `no_cname`, `points_elsewhere`, `cname_loop`, `cname_too_long`, `dns_timeout`, `dns_error`; `not_verified`: the CNAME is right and the TXT record of `verification` is missing; `claimed_elsewhere`: another partner showed that the name is its own; null: it does, or nobody has looked yet. */
            last_error: string | null;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** @description The script tag on this host; null until it is active. */
            snippet: string | null;
            /**
             * @description `pending`: looked for until it points here, for at most 7 days. `active`: it collects. `failed`: it did not point here in time, or no longer does for 3 days; POST it again.
             * @enum {string}
             */
            status: "pending" | "active" | "failed";
            /** Format: uuid */
            tracker_id: string;
            /** @description The DNS record that shows that the name is yours: another partner claims it too, or had it. With it in place the name becomes active once its CNAME is right. null: the CNAME is enough. */
            verification: {
                name: string;
                /** @constant */
                type: "TXT";
                value: string;
            } | null;
        };
        CustomDomainCreate: {
            /**
             * @description Lower case, IDNs as punycode, at least two labels, no trailing dot; no address.
             * @example visits.example.com
             */
            hostname: string;
        };
        CustomDomainDeleted: {
            /** @constant */
            deleted: true;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            deleted_at: string;
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
        CustomDomainList: {
            domains: components["schemas"]["CustomDomain"][];
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
        /**
         * @description Labels of the installer, which a visitor can alter. At most 32, at most 2,048 bytes as JSON. Names: a letter, then letters, digits, `_`, `.` or `-`, at most 64 characters; `constructor` and `prototype` are reserved. Values: a string of at most 512 characters, a number, a boolean or null.
         * @example {
         *       "campaign": "spring",
         *       "step": 2
         *     }
         */
        CustomParameters: {
            [key: string]: string | number | boolean | null;
        };
        /** @description As it stands now, shared by all keys of the partner, whatever the date range. */
        EnrichmentStatus: {
            /** @description Not a guaranteed rate. */
            completed_observed_last_minute: number;
            oldest_checked_at: string | null;
            oldest_pending_at: string | null;
            /** @description Unfinished unique enrichments. */
            pending: number;
            retrying: number;
            submission_unconfirmed: number;
        };
        /** @description The process is running; lookups may still be unavailable. */
        Health: {
            /** @constant */
            status: "ok";
        };
        /** @description What the whole ledger was at one moment, signed. One a UTC day is kept. */
        LedgerAnchor: {
            entries: number;
            /** @description Digest of the last entry at that time. */
            head_digest: string;
            /** Format: date-time */
            made_at: string;
            /** Format: uuid */
            partner_id: string;
            /**
             * Format: base64
             * @description SubjectPublicKeyInfo.
             */
            public_key: string;
            /**
             * Format: base64
             * @description Ed25519, of six lines: `doorplate anchor 1` and the five fields above.
             */
            signature: string;
            units: number;
        };
        /** @description One completed reveal. */
        LedgerEntry: {
            /**
             * Format: date-time
             * @description The entry belongs to the UTC month of this instant.
             */
            completed_at: string;
            /** @description SHA-256 of the ten fields before it, a line each; null is an empty line. */
            digest: string;
            /** @description null: a user of the dashboard asked. */
            key_id: string | null;
            /** @description From 0, without a gap, over all months. */
            number: number;
            /** Format: uuid */
            partner_id: string;
            /** @description Of the completion in the log; ascending. */
            position: string;
            /** @description Digest of the entry before; 64 zeros in the first. */
            previous: string;
            /** Format: uuid */
            reveal_id: string;
            /** Format: uuid */
            tracker_id: string;
            /** @description 1: the result held something. */
            units: 0 | 1;
            /** @description null: a key asked. */
            user_id: string | null;
        };
        LedgerPage: {
            /** @description The newest; null: none was made yet. */
            anchor: components["schemas"]["LedgerAnchor"] | null;
            /** @description Of the month, in the ledger's order. */
            entries: components["schemas"]["LedgerEntry"][];
            /** @description Whether the month has more already. */
            has_more: boolean;
            /** @description The last entry of the whole ledger; null: it has none. */
            head: {
                digest: string;
                number: number;
            } | null;
            /**
             * @description UTC, `YYYY-MM`.
             * @example 2026-03
             */
            month: string;
            /** @description Where to go on, now or later; there always is one. */
            next_cursor: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /** @description Of the whole month so far. */
            totals: {
                entries: number;
                units: number;
            };
        };
        /** @description A saved result. */
        Lookup: {
            /** @description For ISP and unclassified too; null only when every field is unavailable. */
            company: components["schemas"]["Company"] | null;
            /** @description true only for `match_type` company. */
            company_found: boolean;
            company_signals?: components["schemas"]["CompanySignals"];
            /** @description When the saved result was made, not this request; of a past day, midnight UTC of that day alone. */
            enriched_at: string | null;
            /** @description When the saved result becomes stale; of a result of a past day, a midnight UTC. */
            fresh_until: string | null;
            /** @description As submitted. */
            ip: string;
            match_type: components["schemas"]["MatchType"];
            /** @description The address that matched, in canonical form. */
            matched_ip: string;
            network: components["schemas"]["Network"];
            refresh_error: components["schemas"]["RefreshError"];
            refresh_status: components["schemas"]["RefreshStatus"];
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /** @description The saved result is due for a refresh; its fields are kept. */
            stale: boolean;
            /** @constant */
            status: "complete";
        };
        LookupRequest: {
            /**
             * @description One public IPv4 or global-unicast IPv6 address.
             * @example 8.8.8.8
             */
            ip: string;
        };
        /**
         * @description unclassified is no proof that the address is not a business.
         * @enum {string}
         */
        MatchType: "company" | "isp" | "unclassified";
        /** @description What is known of the network behind the address. */
        Network: {
            audience_group: string | null;
            audience_type: string | null;
            connection_type: string | null;
            detail_level: string | null;
            /** @description true: ISP; false: no ISP, which alone is no company match; null: unspecified. */
            is_isp: boolean | null;
        };
        /** @description Unfinished enrichment; never a negative match. */
        Pending: {
            /** @description 0 while awaiting the first attempt. */
            attempts: number;
            company: null;
            /** @description Unknown while unfinished. */
            company_found: null;
            company_signals?: components["schemas"]["CompanySignals"];
            /** @description As submitted. */
            ip: string;
            /** @description A failed attempt, not a negative match. */
            last_error: "lookup_failed" | null;
            /** @description In canonical form, as used for the enrichment. */
            lookup_ip: string;
            /** @description Not an estimate of completion. */
            next_retry_at: string | null;
            /** @description The least delay before polling; same as Retry-After. */
            poll_after_seconds: number;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /** @enum {string} */
            status: "pending" | "retrying";
            /** @description Relative URL of the GET lookup for this address. */
            status_url: string;
            /**
             * Format: date-time
             * @description When the work was first reserved.
             * @example 2026-03-14T09:26:53.589Z
             */
            submitted_at: string;
        };
        /** @description The reason for a deferred refresh. */
        RefreshError: ("pending_limit" | "enrichment_limit" | "enrichment_capacity" | "submission_unconfirmed" | "lookup_failed") | null;
        /**
         * @description not_requested: this GET started no work; deferred: `refresh_error` says why, POST again later.
         * @enum {string}
         */
        RefreshStatus: "not_needed" | "not_requested" | "pending" | "deferred";
        /** @description The receipt of a reveal. */
        Reveal: {
            /** @description Whether it has one recorded unit; reading it never charges. */
            billable: boolean;
            billable_units: 0 | 1;
            completed_at: string | null;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            custom?: components["schemas"]["CustomParameters"];
            /**
             * Format: date-time
             * @description The session's own.
             * @example 2026-03-14T09:26:53.589Z
             */
            expires_at: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            result: components["schemas"]["RevealResult"] | null;
            /** Format: uuid */
            reveal_id: string;
            /** Format: uuid */
            session_id: string;
            /** @enum {string} */
            status: "pending" | "complete";
            /** @description Relative URL of the receipt. */
            status_url: string;
            /** Format: uuid */
            tracker_id: string;
        };
        /** @description A reveal completed, whatever its result. */
        RevealCompletedEvent: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            data: components["schemas"]["CompletedReveal"];
            /**
             * @description Deduplicate by it; same as the header webhook-id.
             * @example evt_reveal_5b8f2a0e-6a2b-5c1d-9f43-0d7c3c643f1e
             */
            id: string;
            /** @constant */
            schema_version: 1;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "reveal.completed";
        };
        /** @description The saved result as it was when the reveal completed; it does not change after that. */
        RevealResult: {
            /** @description For ISP and unclassified too; null only when every field is unavailable. */
            company: components["schemas"]["Company"] | null;
            /** @description true only for `match_type` company. */
            company_found: boolean;
            /** @description When the saved result was made, not this request; of a past day, midnight UTC of that day alone. */
            enriched_at: string | null;
            /** @description When the saved result becomes stale; of a result of a past day, a midnight UTC. */
            fresh_until: string | null;
            match_type: components["schemas"]["MatchType"];
            network: components["schemas"]["Network"];
            refresh_error: components["schemas"]["RefreshError"];
            refresh_status: components["schemas"]["RefreshStatus"];
            /** @description The saved result is due for a refresh; its fields are kept. */
            stale: boolean;
            /** @constant */
            status: "complete";
        };
        /** @description Reveals made with this key; present once there is one. */
        RevealUsage: {
            accounting: string;
            billable_reveals: number;
            completed_reveals: number;
            hourly: {
                billable_reveals: number;
                completed_reveals: number;
                /**
                 * Format: date-time
                 * @example 2026-03-14T09:26:53.589Z
                 */
                hour: string;
            }[];
        };
        /** @description A pixel recorded a new session. */
        SessionCreatedEvent: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            data: components["schemas"]["SessionPreview"];
            /**
             * @description Deduplicate by it; same as the header webhook-id.
             * @example evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11
             */
            id: string;
            /** @constant */
            schema_version: 1;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "session.created";
        };
        SessionFeed: {
            /** @description Whether there is more already. */
            has_more: boolean;
            /** @description Where to go on, now or later; there always is one. */
            next_cursor: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            sessions: components["schemas"]["SessionPreview"][];
        };
        /** @description Consecutive visits of one browser tab. Previewing it is free. */
        SessionPreview: {
            custom?: components["schemas"]["CustomParameters"];
            /** @description The tracker's. */
            customer_reference: string | null;
            /**
             * Format: date-time
             * @description 30 days after `first_seen_at`.
             * @example 2026-03-14T09:26:53.589Z
             */
            expires_at: string;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            first_seen_at: string;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            last_seen_at: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** Format: uuid */
            session_id: string;
            /** Format: uuid */
            tracker_id: string;
            /**
             * @description ISO 3166-1 alpha-2, estimated from the address of the visitor; VPNs affect it. null: unknown. Not headquarters.
             * @example DE
             */
            visitor_country: string | null;
        };
        /** @description A pixel for one customer website. */
        Tracker: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            /**
             * @description A reference of your own, 1 to 200 characters.
             * @example customer-42
             */
            customer_reference: string | null;
            disabled_at: string | null;
            /**
             * Format: uuid
             * @description Public; it is no key.
             */
            id: string;
            /**
             * @description 1 to 200 characters after trimming.
             * @example Main website
             */
            name: string;
            /**
             * @description Where the pixel may run: 1 to 50 serialised origins (`https://host[:port]`; `http://` for localhost and loopback addresses alone) or `https://*.host` for every subdomain.
             * @example [
             *       "https://www.example.com",
             *       "https://*.example.com"
             *     ]
             */
            origins: string[];
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** @description The script tag to install. */
            snippet: string;
        };
        TrackerCreate: {
            /**
             * @description A reference of your own, 1 to 200 characters.
             * @example customer-42
             */
            customer_reference?: string | null;
            /**
             * @description 1 to 200 characters after trimming.
             * @example Main website
             */
            name: string;
            /**
             * @description Where the pixel may run: 1 to 50 serialised origins (`https://host[:port]`; `http://` for localhost and loopback addresses alone) or `https://*.host` for every subdomain.
             * @example [
             *       "https://www.example.com",
             *       "https://*.example.com"
             *     ]
             */
            origins: string[];
        };
        TrackerDeleted: {
            /** @constant */
            deleted: true;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            deleted_at: string;
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
        TrackerList: {
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            trackers: components["schemas"]["Tracker"][];
        };
        /** @description What is left out stays as it is. */
        TrackerUpdate: {
            /**
             * @description A reference of your own, 1 to 200 characters.
             * @example customer-42
             */
            customer_reference?: string | null;
            /**
             * @description 1 to 200 characters after trimming.
             * @example Main website
             */
            name?: string;
            /**
             * @description Where the pixel may run: 1 to 50 serialised origins (`https://host[:port]`; `http://` for localhost and loopback addresses alone) or `https://*.host` for every subdomain.
             * @example [
             *       "https://www.example.com",
             *       "https://*.example.com"
             *     ]
             */
            origins?: string[];
        };
        /** @description Usage of one tracker. */
        TrackerUsage: {
            /** @description What is counted, in words. */
            accounting: string;
            /**
             * Format: date-time
             * @description Inclusive.
             * @example 2026-03-14T09:26:53.589Z
             */
            from: string;
            /** @description By hour; only hours in which anything was counted. */
            hourly: {
                /** @description Successful calls about the tracker, 202s and repeated reads included. */
                api_requests: number;
                /** @description Reveals with a unit, by the time they completed. */
                billable_reveals: number;
                /** @description Requests of the pixel, retries included. */
                capture_requests: number;
                /** @description Those of them that returned a company. */
                company_responses: number;
                /** @description Those of them that were no 202. */
                completed_responses: number;
                /**
                 * Format: date-time
                 * @example 2026-03-14T09:26:53.589Z
                 */
                hour: string;
                /** @description Receipts, by the time they were made; not unique companies. */
                reveals: number;
                /** @description New sessions. */
                sessions: number;
            }[];
            /**
             * Format: date-time
             * @description When counting began.
             * @example 2026-03-14T09:26:53.589Z
             */
            metrics_started_at: string;
            /** @description `from` is before `metrics_started_at`: zeros before it prove nothing. */
            partial_history: boolean;
            /** @description As it stands now, whatever the range. */
            pending_reveals: number;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** @constant */
            timezone: "UTC";
            /**
             * Format: date-time
             * @description Exclusive.
             * @example 2026-03-14T09:26:53.589Z
             */
            to: string;
            totals: {
                /** @description Successful calls about the tracker, 202s and repeated reads included. */
                api_requests: number;
                /** @description Reveals with a unit, by the time they completed. */
                billable_reveals: number;
                /** @description Requests of the pixel, retries included. */
                capture_requests: number;
                /** @description Those of them that returned a company. */
                company_responses: number;
                /** @description Those of them that were no 202. */
                completed_responses: number;
                /** @description Receipts, by the time they were made; not unique companies. */
                reveals: number;
                /** @description New sessions. */
                sessions: number;
            };
            /** Format: uuid */
            tracker_id: string;
        };
        /** @description Usage of the calling key alone. */
        Usage: {
            /** @description What is counted, in words. */
            accounting: string;
            enrichment: components["schemas"]["EnrichmentStatus"];
            /**
             * Format: date-time
             * @description Inclusive.
             * @example 2026-03-14T09:26:53.589Z
             */
            from: string;
            /** @description By hour, then outcome; only hours with requests. */
            hourly: {
                cache_hits: number;
                /** @description The sum over the requests. */
                duration_ms: number;
                /**
                 * Format: date-time
                 * @example 2026-03-14T09:26:53.589Z
                 */
                hour: string;
                outcome: components["schemas"]["UsageOutcome"];
                requests: number;
            }[];
            /** @description The public identifier of the key, not its secret. */
            key_id: string;
            limits: {
                /** @description null: no cap; 0: saved IPs only. */
                new_enrichments_per_day: number | null;
                /** @description Shared by all keys of the partner. */
                pending_enrichments: number;
                requests_per_second: number;
            };
            name: string;
            /** @description Requests by outcome. */
            outcomes: {
                [key: string]: number;
            };
            reveals?: components["schemas"]["RevealUsage"];
            /** @constant */
            timezone: "UTC";
            /**
             * Format: date-time
             * @description Exclusive.
             * @example 2026-03-14T09:26:53.589Z
             */
            to: string;
            totals: {
                average_processing_ms: number;
                cache_hits: number;
                requests: number;
            };
        };
        /** @enum {string} */
        UsageOutcome: "company" | "isp" | "unclassified" | "enqueued" | "pending" | "retrying" | "invalid_request" | "rate_limited" | "error";
        /** @description An endpoint that events are delivered to. */
        Webhook: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            deleted_at: string | null;
            deliveries: components["schemas"]["WebhookDeliveryTotals"];
            /** @description false: paused, or deleted. */
            enabled: boolean;
            /**
             * @description What is delivered; at least one, none twice.
             * @example [
             *       "session.created",
             *       "reveal.completed"
             *     ]
             */
            events: ("session.created" | "reveal.completed")[];
            /** Format: uuid */
            id: string;
            /**
             * @description 1 to 100 characters after trimming.
             * @example Production receiver
             */
            name: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** @description Until then the secret before signs as well; null: there is no overlap. */
            secret_rotation_until: string | null;
            /** @description The one tracker whose events are delivered; null: all trackers. */
            tracker_id: string | null;
            /**
             * Format: date-time
             * @description Of the last change of name, events, enabled or secret.
             * @example 2026-03-14T09:26:53.589Z
             */
            updated_at: string;
            /**
             * @description Immutable.
             * @example https://hooks.example.com/doorplate
             */
            url: string;
        };
        WebhookCreate: {
            /**
             * @description What is delivered; at least one, none twice.
             * @example [
             *       "session.created",
             *       "reveal.completed"
             *     ]
             */
            events: ("session.created" | "reveal.completed")[];
            /**
             * @description 1 to 100 characters after trimming.
             * @example Production receiver
             */
            name: string;
            /** @description The one tracker whose events are delivered; null: all trackers. */
            tracker_id?: string | null;
            /**
             * @description Public HTTPS on port 443, at most 2,048 characters, without credentials or fragment. It cannot change.
             * @example https://hooks.example.com/doorplate
             */
            url: string;
        };
        WebhookDeleted: {
            /** @constant */
            deleted: true;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            deleted_at: string;
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
        /** @description An event on its way to one endpoint. Nothing of the answer of the receiver is kept. */
        WebhookDelivery: {
            /** @description Over all retry cycles. */
            attempts: number;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            delivered_at: string | null;
            /** @description Why the last attempt did not succeed. */
            error: ("timeout" | "dns" | "connect" | "tls" | "blocked_address" | "redirect" | "http_status" | "own_origin") | null;
            /** @example evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11 */
            event_id: string;
            /** @description Of the last attempt; null: the receiver did not answer. */
            http_status: number | null;
            /** Format: uuid */
            id: string;
            last_attempt_at: string | null;
            /** @description null unless it is pending. */
            next_attempt_at: string | null;
            /**
             * @description pending: also while it is retried, paused or under way. cancelled: its endpoint was deleted. expired: its payload is gone.
             * @enum {string}
             */
            state: "pending" | "delivered" | "failed" | "cancelled" | "expired";
            /** @enum {string} */
            type: "session.created" | "reveal.completed" | "webhook.test";
        };
        WebhookDeliveryDetail: {
            /** @description Over all retry cycles. */
            attempts: number;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            delivered_at: string | null;
            /** @description Why the last attempt did not succeed. */
            error: ("timeout" | "dns" | "connect" | "tls" | "blocked_address" | "redirect" | "http_status" | "own_origin") | null;
            /** @description null: its payload is gone. */
            event: components["schemas"]["WebhookEvent"] | null;
            /** @example evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11 */
            event_id: string;
            /** @description Of the last attempt; null: the receiver did not answer. */
            http_status: number | null;
            /** Format: uuid */
            id: string;
            last_attempt_at: string | null;
            /** @description null unless it is pending. */
            next_attempt_at: string | null;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /**
             * @description pending: also while it is retried, paused or under way. cancelled: its endpoint was deleted. expired: its payload is gone.
             * @enum {string}
             */
            state: "pending" | "delivered" | "failed" | "cancelled" | "expired";
            /** @enum {string} */
            type: "session.created" | "reveal.completed" | "webhook.test";
        };
        WebhookDeliveryList: {
            deliveries: components["schemas"]["WebhookDelivery"][];
            has_more: boolean;
            /** @description Where to go on; `""` on the last page. */
            next_cursor: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
        /** @description Deliveries of the last 90 days by state. */
        WebhookDeliveryTotals: {
            cancelled: number;
            delivered: number;
            expired: number;
            failed: number;
            pending: number;
        };
        /** @description What receivers get. */
        WebhookEvent: components["schemas"]["SessionCreatedEvent"] | components["schemas"]["RevealCompletedEvent"] | components["schemas"]["WebhookTestEvent"];
        WebhookLimits: {
            /** @description Attempts in one retry cycle. */
            attempts: number;
            /** @description Attempts under way at a time. */
            concurrent_per_endpoint: number;
            /** @description Endpoints, deleted ones apart. */
            endpoints: number;
            /** @description Bytes of an event. */
            event_bytes: number;
            /** @description Calls to `/v1/webhooks` and below it, of the partner. */
            management_per_minute: number;
            /** @description Pending deliveries of the partner. */
            pending_deliveries: number;
            /** @description Days that one retry cycle lasts. */
            retry_days: number;
            /** @description Attempts begun in a second. */
            starts_per_second_per_endpoint: number;
            /** @description What a receiver has to answer. */
            timeout_seconds: number;
        };
        WebhookList: {
            limits: components["schemas"]["WebhookLimits"];
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            webhooks: components["schemas"]["Webhook"][];
            worker: components["schemas"]["WebhookWorker"];
        };
        WebhookRecover: {
            /**
             * Format: date-time
             * @description A UTC timestamp of the last 30 days, when the outage began.
             * @example 2026-03-14T09:26:53.589Z
             */
            since: string;
        };
        /** @description A recovery, and its deliveries by state. */
        WebhookRecovery: {
            /** @description The endpoint was paused or deleted, a later recovery took them over, or they waited no more when their turn came. */
            cancelled: number;
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            delivered: number;
            /** @description Deliveries that it covers, at least as counted at the request, up to 1,000,000. */
            deliveries: number;
            expired: number;
            failed: number;
            pending: number;
            /**
             * Format: uuid
             * @description The recovery.
             */
            recovery_id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /**
             * Format: date-time
             * @description It covers deliveries that were queued from then on.
             * @example 2026-03-14T09:26:53.589Z
             */
            since: string;
        };
        /** @description The recovery that runs. */
        WebhookRecoveryStarted: {
            /** @description Deliveries that it covers, at least as counted at the request, up to 1,000,000. */
            deliveries: number;
            /**
             * Format: uuid
             * @description The recovery.
             */
            recovery_id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /** @description Where its progress is: a relative URL. */
            status_url: string;
        };
        /** @description An endpoint with its new secret. */
        WebhookSecret: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            deleted_at: string | null;
            deliveries: components["schemas"]["WebhookDeliveryTotals"];
            /** @description false: paused, or deleted. */
            enabled: boolean;
            /**
             * @description What is delivered; at least one, none twice.
             * @example [
             *       "session.created",
             *       "reveal.completed"
             *     ]
             */
            events: ("session.created" | "reveal.completed")[];
            /** Format: uuid */
            id: string;
            /**
             * @description 1 to 100 characters after trimming.
             * @example Production receiver
             */
            name: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id?: string;
            /** @description Until then the secret before signs as well; null: there is no overlap. */
            secret_rotation_until: string | null;
            /** @description Shown this once: `whsec_` and the key material in base64. Keep it on the server. */
            signing_secret: string;
            /** @description The one tracker whose events are delivered; null: all trackers. */
            tracker_id: string | null;
            /**
             * Format: date-time
             * @description Of the last change of name, events, enabled or secret.
             * @example 2026-03-14T09:26:53.589Z
             */
            updated_at: string;
            /**
             * @description Immutable.
             * @example https://hooks.example.com/doorplate
             */
            url: string;
        };
        /** @description A test that is queued. */
        WebhookTest: {
            /** Format: uuid */
            delivery_id: string;
            event_id: string;
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
            /** @constant */
            status: "pending";
        };
        /** @description The test that was asked for. */
        WebhookTestEvent: {
            /**
             * Format: date-time
             * @example 2026-03-14T09:26:53.589Z
             */
            created_at: string;
            data: {
                message: string;
            };
            /**
             * @description Deduplicate by it; same as the header webhook-id.
             * @example evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f
             */
            id: string;
            /** @constant */
            schema_version: 1;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "webhook.test";
        };
        WebhookUpdate: {
            /** @description false pauses; what happens meanwhile is not delivered later. */
            enabled?: boolean;
            /**
             * @description What is delivered; at least one, none twice.
             * @example [
             *       "session.created",
             *       "reveal.completed"
             *     ]
             */
            events?: ("session.created" | "reveal.completed")[];
            /**
             * @description 1 to 100 characters after trimming.
             * @example Production receiver
             */
            name?: string;
        };
        WebhookWorker: {
            /** @description The partner's deliveries whose next attempt is due. */
            due: number;
            /** @description When a process that delivers was last heard of. */
            last_seen_at: string | null;
            /** @description When the oldest of them became due. */
            oldest_due_at: string | null;
            /**
             * @description stalled: what is due has waited for over a minute. stopped: nothing works on deliveries.
             * @enum {string}
             */
            status: "running" | "stalled" | "stopped";
        };
        /** @description Why a request was not carried out. Never a negative company match. */
        ErrorBody: {
            company_signals?: components["schemas"]["CompanySignals"];
            error: {
                /** @description One of the codes of the error catalogs. */
                code: string;
                /** @description For people; its wording may change. */
                message: string;
            };
            /**
             * Format: uuid
             * @description The id of this request, also in `X-Request-ID`.
             * @example 6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11
             */
            request_id: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Capture = components['schemas']['Capture'];
export type Company = components['schemas']['Company'];
export type CompanyCandidate = components['schemas']['CompanyCandidate'];
export type CompanySignals = components['schemas']['CompanySignals'];
export type CompletedReveal = components['schemas']['CompletedReveal'];
export type CustomDomain = components['schemas']['CustomDomain'];
export type CustomDomainCreate = components['schemas']['CustomDomainCreate'];
export type CustomDomainDeleted = components['schemas']['CustomDomainDeleted'];
export type CustomDomainList = components['schemas']['CustomDomainList'];
export type CustomParameters = components['schemas']['CustomParameters'];
export type EnrichmentStatus = components['schemas']['EnrichmentStatus'];
export type Health = components['schemas']['Health'];
export type LedgerAnchor = components['schemas']['LedgerAnchor'];
export type LedgerEntry = components['schemas']['LedgerEntry'];
export type LedgerPage = components['schemas']['LedgerPage'];
export type Lookup = components['schemas']['Lookup'];
export type LookupRequest = components['schemas']['LookupRequest'];
export type MatchType = components['schemas']['MatchType'];
export type Network = components['schemas']['Network'];
export type Pending = components['schemas']['Pending'];
export type RefreshError = components['schemas']['RefreshError'];
export type RefreshStatus = components['schemas']['RefreshStatus'];
export type Reveal = components['schemas']['Reveal'];
export type RevealCompletedEvent = components['schemas']['RevealCompletedEvent'];
export type RevealResult = components['schemas']['RevealResult'];
export type RevealUsage = components['schemas']['RevealUsage'];
export type SessionCreatedEvent = components['schemas']['SessionCreatedEvent'];
export type SessionFeed = components['schemas']['SessionFeed'];
export type SessionPreview = components['schemas']['SessionPreview'];
export type Tracker = components['schemas']['Tracker'];
export type TrackerCreate = components['schemas']['TrackerCreate'];
export type TrackerDeleted = components['schemas']['TrackerDeleted'];
export type TrackerList = components['schemas']['TrackerList'];
export type TrackerUpdate = components['schemas']['TrackerUpdate'];
export type TrackerUsage = components['schemas']['TrackerUsage'];
export type Usage = components['schemas']['Usage'];
export type UsageOutcome = components['schemas']['UsageOutcome'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookCreate = components['schemas']['WebhookCreate'];
export type WebhookDeleted = components['schemas']['WebhookDeleted'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];
export type WebhookDeliveryDetail = components['schemas']['WebhookDeliveryDetail'];
export type WebhookDeliveryList = components['schemas']['WebhookDeliveryList'];
export type WebhookDeliveryTotals = components['schemas']['WebhookDeliveryTotals'];
export type WebhookEvent = components['schemas']['WebhookEvent'];
export type WebhookLimits = components['schemas']['WebhookLimits'];
export type WebhookList = components['schemas']['WebhookList'];
export type WebhookRecover = components['schemas']['WebhookRecover'];
export type WebhookRecovery = components['schemas']['WebhookRecovery'];
export type WebhookRecoveryStarted = components['schemas']['WebhookRecoveryStarted'];
export type WebhookSecret = components['schemas']['WebhookSecret'];
export type WebhookTest = components['schemas']['WebhookTest'];
export type WebhookTestEvent = components['schemas']['WebhookTestEvent'];
export type WebhookUpdate = components['schemas']['WebhookUpdate'];
export type WebhookWorker = components['schemas']['WebhookWorker'];
export type ErrorBody = components['schemas']['ErrorBody'];
export interface operations {
    readHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is running. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    readLedger: {
        parameters: {
            query?: {
                /** @description UTC, `YYYY-MM`; the current one by default. */
                month?: string;
                /** @description `next_cursor` of a page of the same month. */
                cursor?: string;
                /** @description Entries on a page; 100 by default. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, which may be empty. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LedgerPage"];
                };
            };
        };
    };
    readLookup: {
        parameters: {
            query: {
                /** @description One public IPv4 or global-unicast IPv6 address. */
                ip: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A saved result. It may be kept for 60 seconds if no refresh is needed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lookup"];
                };
            };
            /** @description Unfinished enrichment; poll `status_url`. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    requestLookup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LookupRequest"];
            };
        };
        responses: {
            /** @description A saved result. It may be kept for 60 seconds if no refresh is needed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Lookup"];
                };
            };
            /** @description Unfinished enrichment; poll `status_url`. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pending"];
                };
            };
        };
    };
    getReveal: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The reveal. */
                reveal_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receipt of a complete reveal. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reveal"];
                };
            };
            /** @description The reveal is accepted and waits for its result: poll. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reveal"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description Sessions of this tracker alone. */
                tracker_id?: string;
                /** @description `next_cursor` of a page of the same filter. */
                cursor?: string;
                /** @description Sessions on a page; 50 by default. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, which may be empty. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionFeed"];
                };
            };
        };
    };
    previewSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionPreview"];
                };
            };
        };
    };
    revealSession: {
        parameters: {
            query?: never;
            header: {
                /** @description New for each reveal, the same for its retries. */
                "Idempotency-Key": string;
            };
            path: {
                /** @description The session. */
                session_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The receipt of a complete reveal. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reveal"];
                };
            };
            /** @description The reveal is accepted and waits for its result: poll. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reveal"];
                };
            };
        };
    };
    listTrackers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The trackers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackerList"];
                };
            };
        };
    };
    createTracker: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrackerCreate"];
            };
        };
        responses: {
            /** @description The tracker, with the snippet to install. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tracker"];
                };
            };
        };
    };
    disableTracker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tracker, disabled. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tracker"];
                };
            };
        };
    };
    updateTracker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrackerUpdate"];
            };
        };
        responses: {
            /** @description The tracker, changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tracker"];
                };
            };
        };
    };
    deleteTracker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description It is deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackerDeleted"];
                };
            };
        };
    };
    listDomains: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domains. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CustomDomainList"];
                };
            };
        };
    };
    createDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CustomDomainCreate"];
            };
        };
        responses: {
            /** @description The domain. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CustomDomain"];
                };
            };
        };
    };
    getDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
                /** @description The domain. */
                domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CustomDomain"];
                };
            };
        };
    };
    deleteDomain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
                /** @description The domain. */
                domain_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CustomDomainDeleted"];
                };
            };
        };
    };
    enableTracker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The tracker, active. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tracker"];
                };
            };
        };
    };
    readTrackerUsage: {
        parameters: {
            query?: {
                /** @description First day, inclusive, UTC. Alone it runs to the end of today. */
                from?: string;
                /** @description Last day, exclusive, UTC. Needs `from`. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The tracker. */
                tracker_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was counted in the range. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrackerUsage"];
                };
            };
        };
    };
    readUsage: {
        parameters: {
            query?: {
                /** @description First day, inclusive, UTC. Alone it runs to the end of today. */
                from?: string;
                /** @description Last day, exclusive, UTC. Needs `from`. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was counted in the range. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoints. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookCreate"];
            };
        };
        responses: {
            /** @description The endpoint, with its secret. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookSecret"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeleted"];
                };
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookUpdate"];
            };
        };
        responses: {
            /** @description The endpoint as it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description `next_cursor` of a page of the same filter. */
                cursor?: string;
                /** @description Deliveries in this state alone. */
                status?: "pending" | "delivered" | "failed" | "cancelled" | "expired";
            };
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page, which may be empty. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryList"];
                };
            };
        };
    };
    getWebhookDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
                /** @description The delivery. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryDetail"];
                };
            };
        };
    };
    retryWebhookDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
                /** @description The delivery. */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The delivery, pending. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryDetail"];
                };
            };
        };
    };
    recoverWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookRecover"];
            };
        };
        responses: {
            /** @description The recovery runs. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookRecoveryStarted"];
                };
            };
        };
    };
    getWebhookRecovery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
                /** @description The recovery. */
                recovery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The recovery. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookRecovery"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The endpoint, with its new secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookSecret"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The endpoint. */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The test is queued. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
        };
    };
}
