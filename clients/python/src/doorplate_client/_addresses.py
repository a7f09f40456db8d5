"""Addresses in text: one spelling for each, and which of them are not public."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

# The addresses of a log repeat: most lines are answered from here.
CACHED_TEXTS = 65_536

_BRACKETED = re.compile(r"\[([^\]]+)\](?::[0-9]+)?")
_WITH_PORT = re.compile(r"([0-9]+\.[0-9]+\.[0-9]+\.[0-9]+):[0-9]+")
_QUOTES = re.compile(r'\A"|"\Z')
_LOCAL: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(network)
    for network in (
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "0.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
        "::/127",
    )
)


def canonical_address(text: str) -> str:
    """Return the one spelling of an address; any other text as it is, without blanks around it.

    IPv6 is spelled as RFC 5952 says. An IPv4-mapped address (RFC 4291, 2.5.5.2) is the IPv4 address.
    """
    trimmed = text.strip()
    if ":" not in trimmed or "%" in trimmed:
        return trimmed
    try:
        address = IPv6Address(trimmed)
    except ValueError:
        return trimmed
    return str(address.ipv4_mapped or address)


@lru_cache(CACHED_TEXTS)
def is_local(ip: str) -> bool:
    """Return whether an address is private, link-local or of the loopback. Raise ValueError if it is none."""
    address = ip_address(ip)
    return any(address in network for network in _LOCAL)


def address_in(value: object) -> str | None:
    """Return the canonical address in a text: bare, in brackets, with a port, or the first public one of a list.

    Without a public one it is the first of the list; None if there is none at all, or no text.
    """
    return _address_in(value) if isinstance(value, str) else None


@lru_cache(CACHED_TEXTS)
def _address_in(text: str) -> str | None:
    found = [ip for ip in map(_one_address, text.split(",")) if ip is not None]
    return next((ip for ip in found if not is_local(ip)), found[0] if found else None)


def _one_address(text: str) -> str | None:
    trimmed = _QUOTES.sub("", text.strip())
    inner = _BRACKETED.fullmatch(trimmed) or _WITH_PORT.fullmatch(trimmed)
    canonical = canonical_address(inner[1] if inner else trimmed)
    if "%" in canonical:
        return None
    try:
        ip_address(canonical)
    except ValueError:
        return None
    return canonical
