"""Blotting out what must not leave a log: addresses, hosts, credentials.

Here belongs the redaction of free text, which is what the beginning of an unreadable line is: it may hold anything, so
only keys and numbers of it are shown. Which facts about a run are kept at all belongs to `metadata`.
"""

import re

_SECRETS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b[a-z][a-z0-9+.-]*://[^\s\"']+"
    r"|\b(?:sk|hf|ghp|gho|glpat|xox[abp])[-_][A-Za-z0-9_-]{6,}"
    r"|\bAKIA[A-Z0-9]{12,}"
    r"|(?i:[\w.-]*(?:pass(?:word|wd)?|secret|token|api[-_]?key|authorization|bearer|host(?:name)?|user(?:name)?"
    r"|e-?mail)[\"']?\s*[:=]\s*(?:bearer\s+)?[\"']?[^\s\"',}]+)"
    r"|\b[A-Fa-f0-9]{32,}\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"
)


def redact(text: str) -> str:
    """Return a text with whatever looks like an address, a host or a credential blotted out."""
    return _SECRETS.sub("[redacted]", text)


_WORD = re.compile(r"""[^\s"'{}\[\](),:=]+(?P<key>(?=["']?\s*[:=]))?""")
_NUMBER = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?")
_KNOWN_WORDS = frozenset({"nan", "+nan", "-nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_KNOWN_WORDS |= {"null", "none", "true", "false", "step", "redacted"}


def outline(text: str) -> str:
    """Return what a text looks like: its keys, numbers and marks, and three dots for every other word."""
    return _WORD.sub(_outline_word, redact(text))


def _outline_word(match: re.Match[str]) -> str:
    word = match[0]
    is_shown = match["key"] is not None or _NUMBER.fullmatch(word) or word.lower() in _KNOWN_WORDS
    return word if is_shown else "..."
