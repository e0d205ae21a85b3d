"""Backoff is bounded, grows, and spreads."""

from hypothesis import given
from hypothesis import strategies as some

from dartwing_jobs.engine.rules.backoff import JITTER, Backoff

seconds = some.floats(0.001, 10_000)
chances = some.floats(0, 1)


@given(base=seconds, cap=seconds, retry=some.integers(0, 10**6), chance=chances)
def test_never_more_than_the_cap_and_never_nothing(base, cap, retry, chance):
	delay = Backoff(base, cap).delay(retry, lambda: chance)
	assert 0 < delay <= cap


@given(base=seconds, cap=seconds, retry=some.integers(1, 100), chance=chances)
def test_the_same_chance_never_waits_less_later(base, cap, retry, chance):
	backoff = Backoff(base, cap)
	assert backoff.delay(retry, lambda: chance) <= backoff.delay(retry + 1, lambda: chance)


@given(base=seconds, retry=some.integers(1, 20))
def test_below_the_cap_it_doubles(base, retry):
	backoff = Backoff(base, cap_seconds=float("inf"))
	assert backoff.delay(retry, lambda: 0) == base * 2 ** (retry - 1)
	assert backoff.delay(retry, lambda: 1) == base * 2 ** (retry - 1) * (1 - JITTER)


def test_the_documents_numbers():
	assert [Backoff(5, 300).delay(retry, lambda: 0) for retry in range(1, 8)] == [5, 10, 20, 40, 80, 160, 300]
