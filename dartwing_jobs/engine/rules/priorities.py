"""Priorities: four words, and the integers that other systems use for them."""

LOW = "Low"
NORMAL = "Normal"
HIGH = "High"
CRITICAL = "Critical"
ALL = (LOW, NORMAL, HIGH, CRITICAL)


def from_value(value):
	"""The word for a priority given as a word or as an integer; what is neither comes back as it is."""
	number = _as_integer(value)
	if number is None:
		return value
	if number < 0:
		return LOW
	if number == 0:
		return NORMAL
	return HIGH if number < 10 else CRITICAL


def _as_integer(value) -> int | None:
	if isinstance(value, bool) or not isinstance(value, int | str):
		return None
	try:
		return int(value)
	except ValueError:
		return None
