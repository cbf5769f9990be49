"""Blotting out what must not leave a log: addresses, hosts, credentials.

Here belongs the redaction of free text, which is what the beginning of an unreadable line is. Which facts about a
run are kept at all belongs to `metadata`.
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
