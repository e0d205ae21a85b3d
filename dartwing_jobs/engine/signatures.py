"""Signatures of what is sent to webhooks. No Frappe here: receivers may import this file alone."""

import hashlib
import hmac
import time

PREFIX = "sha256="
TOLERANCE_SECONDS = 300


def sign(body: bytes, timestamp: str, secret: str) -> str:
	"""What the header X-Dartwing-Signature says for this body, sent at this time."""
	signed = timestamp.encode() + b"." + body
	return PREFIX + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def verify(
	body: bytes,
	timestamp: str,
	signature: str,
	secret: str,
	now: float | None = None,
	tolerance: float = TOLERANCE_SECONDS,
) -> bool:
	"""Whether a body was signed with this secret, and not longer ago than `tolerance` seconds.

	`timestamp` and `signature` are the two headers as they came, `now` is in seconds since 1970.
	"""
	if not (timestamp.isascii() and timestamp.isdigit()):
		return False
	age = abs((time.time() if now is None else now) - int(timestamp))
	expected = sign(body, timestamp, secret)
	return hmac.compare_digest(expected.encode(), signature.encode()) and age <= tolerance
