"""Cron expressions: what they mean, what is refused, how long it takes. No clocks change here."""

import time
from datetime import datetime, timedelta

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from dartwing_jobs import cron
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests import plain_cron
from dartwing_jobs.tests.cron_expressions import expressions, fields

NOW = datetime(2026, 11, 16, 12)
NEVER = datetime(2200, 1, 1)


def next_dates(expression: str, most: int = 3, after: datetime = NOW) -> list[str]:
	return [f"{moment:%Y-%m-%d}" for moment in cron.fires(expression, "UTC", after, NEVER, most)]


@pytest.mark.parametrize(
	"expression",
	[
		"* * * * *",
		"0 9 * * MON-FRI",
		"*/5 0-6 1,15 * *",
		"0 0 29 2 *",
		"0 0 1 1 0",
		"59 23 31 12 7",
		"0 0 29 2 1",
		"0 0 29 2 */7",
		"10/20 8-18/2 L * fri#2,5l",
	],
)
def test_cron_expressions_that_fire(expression):
	cron.check(expression, NOW)


@pytest.mark.parametrize(
	"expression",
	[
		"",
		"* * * *",
		"* * * * * *",
		"@daily",
		"60 * * * *",
		"0 24 * * *",
		"0 0 0 * *",
		"0 0 * 13 *",
		"a b c d e",
		"*/0 * * * *",
		"-1 * * * *",
		"5-1 * * * *",
		"1,,2 * * * *",
		"1- * * * *",
		"*-5 * * * *",
		"1/2/3 * * * *",
		"0x1 * * * *",
		"1.5 * * * *",
		"٣ * * * *",
		"* JAN * * *",
		"0 0 * MON *",
		"0 0 * * FRI#6",
		"0 0 * * FRI#0",
		"0 0 * * 8",
		"0 0 * * L",
		"0 0 L-3 * *",
		"0 0 15W * *",
		"0 0 ? * *",
		"0," * 100 + "0 * * * *",
	],
)
def test_malformed_cron_expressions(expression):
	with pytest.raises(InvalidJobError, match="cron expression"):
		cron.check(expression, NOW)


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4 */2"])
def test_cron_expressions_that_never_fire(expression):
	with pytest.raises(InvalidJobError, match="never fires"):
		cron.check(expression, NOW)
	assert cron.next_fire(expression, "UTC", NOW) is None


def test_a_step_that_is_longer_than_its_field_is_refused():
	"""`*/90` looks like every ninety minutes and would be every hour."""
	with pytest.raises(InvalidJobError, match="minute from 0 to 59"):
		cron.check("*/90 * * * *", NOW)


@pytest.mark.parametrize(
	("expression", "dates"),
	[
		("0 0 * * 0", ["2026-11-22", "2026-11-29", "2026-12-06"]),
		("0 0 * * 7", ["2026-11-22", "2026-11-29", "2026-12-06"]),
		("0 0 * * sun", ["2026-11-22", "2026-11-29", "2026-12-06"]),
		("0 0 * * FRI-SUN", ["2026-11-20", "2026-11-21", "2026-11-22"]),
		("0 0 * * SUN-SUN", ["2026-11-22", "2026-11-29", "2026-12-06"]),
		("0 0 * * 5-7/2", ["2026-11-20", "2026-11-22", "2026-11-27"]),
		("0 0 * * 3/2", ["2026-11-18", "2026-11-20", "2026-11-25"]),
		("0 0 1 JAN-MAR *", ["2027-01-01", "2027-02-01", "2027-03-01"]),
		("0 0 L * *", ["2026-11-30", "2026-12-31", "2027-01-31"]),
		("0 0 L 2 *", ["2027-02-28", "2028-02-29", "2029-02-28"]),
		("0 0 * * FRIL", ["2026-11-27", "2026-12-25", "2027-01-29"]),
		("0 0 * * MON#5", ["2026-11-30", "2027-03-29", "2027-05-31"]),
		("0 0 * * 0#1", ["2026-12-06", "2027-01-03", "2027-02-07"]),
	],
)
def test_what_fields_mean(expression, dates):
	assert next_dates(expression) == dates


def test_day_and_weekday_when_both_are_restricted_either_suffices():
	"""As cron has always done: Fridays, and each thirteenth."""
	assert next_dates("0 0 13 * 5", 5) == [
		"2026-11-20",
		"2026-11-27",
		"2026-12-04",
		"2026-12-11",
		"2026-12-13",
	]


def test_a_day_field_that_begins_with_a_star_does_not_restrict():
	"""Debian's rule: then both must match. croniter takes `*/2` for a restriction and fires on either."""
	assert next_dates("0 0 */2 * MON") == ["2026-11-23", "2026-12-07", "2026-12-21"]
	assert next_dates("0 0 13 * */5") == ["2026-12-13", "2027-06-13", "2027-08-13"]


def test_a_day_and_the_nth_weekday_are_alternatives_too():
	"""croniter 2 and 6 find no date at all for this."""
	assert next_dates("0 0 16 * FRI#2") == ["2026-12-11", "2026-12-16", "2027-01-08"]


def test_a_range_of_one_is_that_one():
	"""croniter 6 takes 23-23 for every hour; others go on from there when a step follows."""
	assert cron.fires("0 23-23 * * *", "UTC", NOW, NEVER, 2) == [
		datetime(2026, 11, 16, 23),
		datetime(2026, 11, 17, 23),
	]
	assert cron.next_fire("0 1-1/4 * * *", "UTC", NOW) == datetime(2026, 11, 17, 1)


def test_a_start_with_a_step_goes_on_to_the_end_and_not_around():
	"""croniter 6 goes around: 59/44 fires at 0 and 44."""
	assert cron.fires("59/44 * * * *", "UTC", NOW, NEVER, 2) == [
		datetime(2026, 11, 16, 12, 59),
		datetime(2026, 11, 16, 13, 59),
	]


@pytest.mark.parametrize(
	("expression", "after", "dates"),
	[
		# 2.0.7 and 6.0.0 leave out 1 March, and find no date at all for the third
		("35 0 */15 * *", datetime(2026, 2, 18), ["2026-03-01", "2026-03-16", "2026-03-31"]),
		("0 0 1,31 * *", datetime(2026, 2, 18), ["2026-03-01", "2026-03-31", "2026-04-01"]),
		("0 0 L,31 6 *", datetime(2026, 4, 20), ["2026-06-30", "2027-06-30", "2028-06-30"]),
		# 2.0.7 fires on Sundays as well
		("0 0 * * 3/4", NOW, ["2026-11-18", "2026-11-25", "2026-12-02"]),
		# 6.0.0 and 6.2.4 go around: Fridays and Sundays; May and September
		("0 0 * * SAT/5", NOW, ["2026-11-21", "2026-11-28", "2026-12-05"]),
		("0 0 L 12/4 *", datetime(2026, 1, 14), ["2026-12-31", "2027-12-31", "2028-12-31"]),
		# 6.0.0 and 6.2.4 take a range of one for all: every day; every month
		("0 0 * * 6-6", NOW, ["2026-11-21", "2026-11-28", "2026-12-05"]),
		("0 0 1 12-12 *", NOW, ["2026-12-01", "2027-12-01", "2028-12-01"]),
		# all three find no date, or refuse to read it
		("0 0 L * SUN#3", datetime(2026, 6, 24), ["2026-06-30", "2026-07-19", "2026-07-31"]),
		("0 0 * * MON,FRI#2", datetime(2026, 12, 1), ["2026-12-07", "2026-12-11", "2026-12-14"]),
	],
)
def test_dates_that_some_version_of_croniter_gets_wrong(expression, after, dates):
	"""Why the calendar is our own: decision 15. Tried with 2.0.7, 6.0.0 and 6.2.4."""
	assert next_dates(expression, after=after) == dates


@pytest.mark.parametrize(
	("expression", "reason"),
	[
		("22-20 * * * *", "22-20 is not a minute from 0 to 59"),
		("0 0 5-1 * *", "5-1 is not a day from 1 to 31"),
		("0 0 ? * *", "? is not a day from 1 to 31"),
		("0 0 * DEC-FEB *", "DEC-FEB is not a month from 1 to 12"),
		("0 0 * * 6-1", "6-1 is not a weekday from 0 to 7"),
		("99 99 * * *", "99 is not a minute from 0 to 59"),
	],
)
def test_a_refusal_names_the_first_part_that_is_wrong(expression, reason):
	"""croniter accepts `?`, and from version 6 on ranges that go around."""
	with pytest.raises(InvalidJobError) as refusal:
		cron.check(expression, NOW)
	assert str(refusal.value) == f"{expression} is not a valid cron expression: {reason}."


def test_the_first_of_march_after_every_tenth_day():
	"""pallets-eco/croniter issue 1: it was left out after a short February."""
	dates = next_dates("0 0 */10 * *", 6, datetime(2021, 2, 1, 1))
	assert dates == ["2021-02-11", "2021-02-21", "2021-03-01", "2021-03-11", "2021-03-21", "2021-03-31"]


def test_the_rarest_dates_are_found():
	assert next_dates("0 0 29 2 */7", 4, datetime(2072, 1, 1)) == [
		"2088-02-29",
		"2128-02-29",  # 2100 is no leap year
		"2156-02-29",
		"2184-02-29",
	]


def test_a_fire_is_later_than_the_moment_asked_for_even_by_a_microsecond():
	nine = datetime(2026, 11, 16, 9)
	tick = timedelta.resolution
	for expression in ("0 9 * * *", "0 */9 * * *"):
		assert cron.next_fire(expression, "UTC", nine - tick) == nine
		assert cron.next_fire(expression, "UTC", nine) > nine
		assert cron.next_fire(expression, "UTC", nine + tick) > nine


def test_fires_begin_after_the_first_moment_and_end_at_the_last():
	hours = [datetime(2026, 11, 16, hour) for hour in range(13, 17)]
	assert cron.fires("0 * * * *", "UTC", NOW, hours[-1], 10) == hours
	assert cron.fires("0 * * * *", "UTC", NOW, hours[-1], 2) == hours[:2]
	assert cron.last_fires("0 * * * *", "UTC", NOW, hours[-1], 10) == hours
	assert cron.last_fires("0 * * * *", "UTC", NOW, hours[-1], 2) == hours[-2:]


@pytest.mark.parametrize("ask", [cron.fires, cron.last_fires])
def test_no_fires_where_none_are_asked_for_or_time_runs_backwards(ask):
	assert ask("* * * * *", "UTC", NOW, NOW + timedelta(days=1), 0) == []
	assert ask("* * * * *", "UTC", NOW, NOW, 5) == []
	assert ask("* * * * *", "UTC", NOW, NOW - timedelta(days=1), 5) == []
	assert ask("0 0 30 2 *", "UTC", NOW, NOW + timedelta(days=1), 5) == []


def test_the_end_of_time_is_no_error():
	assert cron.next_fire("* * * * *", "UTC", datetime(9999, 12, 30)) is None
	assert cron.next_fire("0 0 1 1 *", "Pacific/Apia", datetime(9998, 12, 31)) is None


@pytest.mark.parametrize(
	("name", "is_one"),
	[
		("UTC", True),
		("Europe/Paris", True),
		("America/Argentina/Ushuaia", True),
		("Etc/GMT+5", True),
		("Europe", False),
		("Europe/", False),
		("europe/paris", False),
		("../etc/passwd", False),
		("/etc/localtime", False),
		("right/UTC", False),
		("posix/UTC", False),
		("localtime", False),
		("+02:00", False),
		("CEST", False),
		("", False),
		(None, False),
	],
)
def test_zones_are_names_of_the_iana_database(name, is_one):
	assert cron.is_zone(name) is is_one


@pytest.mark.parametrize(
	("expression", "time_zone", "after"),
	[
		("0 0 29 2 */7", "Europe/Paris", datetime(2089, 1, 1)),
		("30 */2 29 2 */7", "Europe/Paris", datetime(2089, 1, 1)),
		("0 0 31 2,4,6,9,11 */7", "UTC", NOW),
		("* 1 * * *", "America/New_York", datetime(2026, 11, 1, 6)),
		("* 0-23 * * *", "Pacific/Kwajalein", datetime(1969, 9, 30, 13)),
	],
)
def test_the_rarest_fires_are_computed_within_a_bound(expression, time_zone, after):
	"""Twenty milliseconds of a processor at most, the best of three: others use this machine as well."""
	best = min(_seconds(expression, time_zone, after, 1) for _ in range(3))
	assert best < 0.02


def test_a_thousand_fires_are_computed_within_a_tick():
	expressions = [f"{minute} {hour} * * MON-FRI" for minute in range(50) for hour in range(20)]
	start = time.process_time()
	for expression in expressions:
		cron.next_fire(expression, "America/New_York", NOW)
	assert time.process_time() - start < 0.6


def _seconds(expression: str, time_zone: str, after: datetime, times: int) -> float:
	start = time.process_time()
	for _ in range(times):
		cron.next_fire(expression, time_zone, after)
	return time.process_time() - start


moments = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)).map(
	lambda moment: moment.replace(second=0, microsecond=0)
)


# croniter 2.0 and 6.0 leave out dates when a day that not every month has stands beside others
days = st.one_of(fields(1, 28, starred=False), st.sampled_from(["29", "30", "31"]))


@settings(max_examples=150)
@given(expression=expressions(days), after=moments)
def test_without_changes_of_the_clock_croniter_agrees(expression, after):
	ours = cron.fires(expression, "UTC", after, NEVER, 5)
	theirs = croniter(expression, after, max_years_between_matches=50)
	assert ours == [theirs.get_next(datetime) for _ in ours]


@settings(max_examples=60)
@given(expression=expressions(), after=moments, most=st.integers(1, 30))
def test_walking_through_every_minute_agrees(expression, after, most):
	until = after + timedelta(hours=12)
	clock = plain_cron.readings("Asia/Kolkata", after + timedelta(minutes=1), until)
	walked = plain_cron.fires(expression, clock)
	assert cron.fires(expression, "Asia/Kolkata", after, until, most) == walked[:most]
	assert cron.last_fires(expression, "Asia/Kolkata", after, until, most) == walked[-most:]
