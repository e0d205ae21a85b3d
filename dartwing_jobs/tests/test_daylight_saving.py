"""Schedules where clocks change: a rhythm follows the clock, a time of day comes once.

The rule, in `docs/schedules.md`: an hour field that begins with `*` fires at every match, so twice in a
repeated hour and not in one that is jumped over. Others fire once: at the first of two, or after the jump.
"""

from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import _zoneinfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartwing_jobs import cron
from dartwing_jobs.cron import zones
from dartwing_jobs.tests import plain_cron
from dartwing_jobs.tests.cron_expressions import fields

ZONES = [
	"America/New_York",
	"Europe/Paris",
	"Europe/Dublin",  # its winter time is the exception
	"Australia/Lord_Howe",  # half an hour
	"Pacific/Chatham",  # from 02:45 to 03:45
	"Antarctica/Troll",  # two hours
	"America/Havana",  # at midnight
	"Asia/Beirut",  # at midnight
	"Africa/Cairo",  # at midnight, on weekdays
	"America/Santiago",  # at midnight
	"Atlantic/Azores",  # back from one to midnight
	"Africa/Casablanca",  # for Ramadan
	"Asia/Gaza",  # four times a year
	"America/St_Johns",  # half an hour off the others
	"America/Nuuk",  # late in the evening of the day before
]
WITHOUT_CHANGES = ["UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/Phoenix", "Asia/Tokyo", "Africa/Lagos"]
# what governments will do, each release of the zone data foretells anew: only the past can be counted on
LAST_YEARS = (datetime(2020, 11, 17), datetime(2025, 11, 17))
NEXT_YEARS = (datetime(2026, 11, 17), datetime(2031, 11, 17))
AROUND = timedelta(hours=3)
MINUTE = timedelta(minutes=1)
TYPICAL = [
	"30 * * * *",
	"*/20 */2 * * *",
	"30 2 * * *",
	"*/10 0-3 * * *",
	"15,45 23,0,1 * * *",
	"0 0 * * MON-FRI",
]


@cache
def changes(time_zone: str, start: datetime, end: datetime) -> list[datetime]:
	"""When the clock is changed, found by looking at it twice a day and then each minute."""
	found, step = [], timedelta(hours=12)
	while start < end:
		if offset(time_zone, start) != offset(time_zone, start + step):
			found.append(_minute_of_change(time_zone, start, start + step))
		start += step
	return found


def offset(time_zone: str, moment: datetime) -> timedelta:
	return plain_cron.readings(time_zone, moment, moment)[0][1] - moment


def _minute_of_change(time_zone: str, start: datetime, end: datetime) -> datetime:
	before = offset(time_zone, start)
	clock = plain_cron.readings(time_zone, start, end)
	return next(moment for moment, shown in clock if shown - moment != before)


@cache
def clock_around(time_zone: str, change: datetime, by: timedelta = AROUND):
	return plain_cron.readings(time_zone, change - by, change + by)


def fires_around(expression: str, time_zone: str, change: datetime, by: timedelta = AROUND) -> list[datetime]:
	return cron.fires(expression, time_zone, change - by - MINUTE, change + by, 10_000)


def fires_on(expression: str, time_zone: str, start: datetime, most: int) -> list[datetime]:
	return cron.fires(expression, time_zone, start, start + timedelta(days=800), most)


# every change of ten years, against a second implementation


@pytest.mark.parametrize("time_zone", ZONES)
def test_every_change_of_the_last_and_the_next_five_years(time_zone):
	found = changes(time_zone, *LAST_YEARS)
	fewer = {"Africa/Cairo": 6, "America/Nuuk": 9}  # clocks stood still there in some of them
	assert len(found) >= fewer.get(time_zone, 10)
	for change in [*found, *changes(time_zone, *NEXT_YEARS)]:
		for expression in TYPICAL:
			walked = plain_cron.fires(expression, clock_around(time_zone, change))
			assert fires_around(expression, time_zone, change) == walked, (expression, change)


@pytest.mark.parametrize("time_zone", WITHOUT_CHANGES)
def test_zones_that_never_change(time_zone):
	assert changes(time_zone, *NEXT_YEARS) == []
	for expression in TYPICAL:
		walked = plain_cron.fires(expression, clock_around(time_zone, datetime(2027, 3, 28, 1)))
		assert fires_around(expression, time_zone, datetime(2027, 3, 28, 1)) == walked


hours = st.one_of(fields(0, 23), fields(0, 4, starred=False), fields(20, 23, starred=False))
days = st.one_of(st.just("*"), st.just("*"), fields(1, 31))
weekdays = st.one_of(st.just("*"), st.just("*"), fields(0, 6))


@settings(max_examples=250)
@given(
	data=st.data(),
	time_zone=st.sampled_from(ZONES),
	minute=fields(0, 59),
	hour=hours,
	day=days,
	weekday=weekdays,
)
def test_any_expression_at_any_change_agrees_with_walking_through_every_minute(
	data, time_zone, minute, hour, day, weekday
):
	change = data.draw(st.sampled_from([*changes(time_zone, *LAST_YEARS), *changes(time_zone, *NEXT_YEARS)]))
	expression = f"{minute} {hour} {day} * {weekday}"
	walked = plain_cron.fires(expression, clock_around(time_zone, change))
	assert fires_around(expression, time_zone, change) == walked
	most = data.draw(st.integers(1, 5))
	start, end = change - AROUND - MINUTE, change + AROUND
	assert cron.last_fires(expression, time_zone, start, end, most) == walked[-most:]
	after = start + timedelta(seconds=data.draw(st.integers(0, 6 * 3600)))
	later = [moment for moment in walked if moment > after]
	assert cron.fires(expression, time_zone, after, end, 1) == later[:1]


# the cases that others got wrong


def test_a_time_of_day_keeps_its_hour_on_the_days_after_the_clock_went_back():
	"""pallets-eco/croniter issue 25: 20:00, then 21:00 on the day after. Paris, 2022-10-30."""
	assert fires_on("0 20 * * *", "Europe/Paris", datetime(2022, 10, 29), 4) == [
		datetime(2022, 10, 29, 18),
		datetime(2022, 10, 30, 19),
		datetime(2022, 10, 31, 19),
		datetime(2022, 11, 1, 19),
	]


def test_a_time_of_day_that_comes_twice_fires_at_the_first_only():
	"""croniter 2 goes on at 02:30, croniter 6 fires twice; celery issue 6438 asks what it should do."""
	assert fires_on("30 1 * * *", "America/New_York", datetime(2026, 11, 1), 2) == [
		datetime(2026, 11, 1, 5, 30),
		datetime(2026, 11, 2, 6, 30),
	]


def test_asked_in_between_it_does_not_fire_at_the_second():
	"""After the first 01:30, and again after the clock went back: not today any more."""
	for after in (datetime(2026, 11, 1, 5, 30), datetime(2026, 11, 1, 6), datetime(2026, 11, 1, 6, 10)):
		assert cron.next_fire("30 1 * * *", "America/New_York", after) == datetime(2026, 11, 2, 6, 30)


def test_an_hourly_rhythm_fires_in_both_of_two_equal_hours():
	"""celery issue 10107: the second 01:00 was left out; so does croniter 2."""
	assert fires_on("0 * * * *", "US/Pacific", datetime(2026, 11, 1, 7), 3) == [
		datetime(2026, 11, 1, 8),
		datetime(2026, 11, 1, 9),
		datetime(2026, 11, 1, 10),
	]


@pytest.mark.parametrize(
	("time_zone", "change"),
	[
		("America/Los_Angeles", datetime(2021, 11, 7, 9)),  # sidekiq issue 5049: nothing for an hour
		("Europe/Paris", datetime(2020, 10, 25, 1)),  # celery issue 6438: beat stopped sending
		("America/New_York", datetime(2026, 3, 8, 7)),  # node-cron issue 509: a next time in the past
		("Australia/Melbourne", datetime(2024, 4, 6, 16)),  # kelektiv/node-cron issue 881: two fires missed
		("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30)),
	],
)
def test_every_minute_is_every_minute(time_zone, change):
	by = timedelta(minutes=90)
	found = fires_around("* * * * *", time_zone, change, by)
	assert found == [change - by + minute * MINUTE for minute in range(181)]


def test_a_time_of_day_in_the_gap_fires_right_after_it():
	"""croniter 2 gives a wall time that does not exist; node-cron issue 518 went on to the next year."""
	assert fires_on("30 2 * * *", "America/New_York", datetime(2026, 3, 8, 6, 30), 2) == [
		datetime(2026, 3, 8, 7),
		datetime(2026, 3, 9, 6, 30),
	]


def test_a_day_of_the_year_in_the_gap_does_not_loop():
	"""kelektiv/node-cron issue 638: 02:30 on 26 March 2023 in Amsterdam was looked for without end."""
	assert fires_on("30 2 26 3 *", "Europe/Amsterdam", datetime(2023, 1, 1), 2) == [
		datetime(2023, 3, 26, 1),
		datetime(2024, 3, 26, 1, 30),
	]


def test_several_times_in_one_gap_fire_once_together():
	assert fires_on("*/15 2 * * *", "America/New_York", datetime(2026, 3, 8), 3) == [
		datetime(2026, 3, 8, 7),
		datetime(2026, 3, 9, 6),
		datetime(2026, 3, 9, 6, 15),
	]


def test_a_time_in_the_gap_and_the_one_right_after_it_are_one_fire():
	assert fires_on("0 2,3 * * *", "America/New_York", datetime(2026, 3, 8), 2) == [
		datetime(2026, 3, 8, 7),
		datetime(2026, 3, 9, 6),
	]


def test_a_rhythm_leaves_out_what_the_clock_jumps_over():
	"""Debian's rule for `*`; kelektiv/node-cron fires an additional time at 03:00."""
	assert fires_on("30 * * * *", "America/New_York", datetime(2026, 3, 8, 6), 2) == [
		datetime(2026, 3, 8, 6, 30),
		datetime(2026, 3, 8, 7, 30),
	]
	assert fires_on("30 */2 * * *", "America/New_York", datetime(2026, 3, 8, 5), 2) == [
		datetime(2026, 3, 8, 5, 30),
		datetime(2026, 3, 8, 8, 30),
	]


def test_a_rhythm_of_two_hours_over_the_gap():
	"""pallets-eco/croniter issue 149: it repeated the hour before. London, 2025-03-30, one becomes two."""
	found = fires_on("0 */2 * * *", "Europe/London", datetime(2025, 3, 29, 23), 3)
	assert found == [datetime(2025, 3, 30, 0), datetime(2025, 3, 30, 1), datetime(2025, 3, 30, 3)]


def test_the_minute_field_does_not_make_a_rhythm():
	"""Debian counts `*/15 1 * * *` as a rhythm, for its minutes; here the hour alone decides."""
	assert len(fires_on("*/15 1 * * *", "America/New_York", datetime(2026, 11, 1), 8)) == 8
	assert fires_on("*/15 1 * * *", "America/New_York", datetime(2026, 11, 1), 5)[3:] == [
		datetime(2026, 11, 1, 5, 45),
		datetime(2026, 11, 2, 6),
	]


def test_all_hours_by_name_are_times_of_day():
	"""`0-23` fires once in the repeated hour where `*` fires twice."""
	hours = fires_on("0 0-23 * * *", "America/New_York", datetime(2026, 11, 1, 4), 2)
	assert hours == [datetime(2026, 11, 1, 5), datetime(2026, 11, 1, 7)]


@pytest.mark.parametrize(
	("expression", "time_zone", "before", "fire"),
	[
		# celery issue 9653: one hour too late after the start of summer time
		("0 9 * * *", "Europe/Zurich", datetime(2025, 3, 29, 8), datetime(2025, 3, 30, 7)),
		# django-celery-beat issue 134: an hour late, in the week after and on the day itself
		("0 14 * * 4", "America/Los_Angeles", datetime(2018, 3, 8, 22), datetime(2018, 3, 15, 21)),
		("4 16 * * *", "America/New_York", datetime(2025, 3, 8, 21, 4), datetime(2025, 3, 9, 20, 4)),
		# taichino/croniter issue 116: 07:00 on the Monday after
		("0 8 * * 1-5", "America/New_York", datetime(2018, 11, 2, 12), datetime(2018, 11, 5, 13)),
		# taichino/croniter issue 82: midnight became one o'clock
		("0 0 * * *", "Europe/Warsaw", datetime(2017, 3, 25, 23), datetime(2017, 3, 26, 22)),
		# sidekiq issue 5214: a time in summer, asked for in winter
		("* * * 5 *", "America/Los_Angeles", datetime(2022, 2, 22, 18), datetime(2022, 5, 1, 7)),
		# celery pull request 10608: odd minutes and two hours
		("50 3 * * *", "Pacific/Chatham", datetime(2026, 9, 25, 15, 5), datetime(2026, 9, 26, 14, 5)),
		("50 3 * * *", "Pacific/Chatham", datetime(2026, 4, 3, 14, 5), datetime(2026, 4, 4, 15, 5)),
		("0 23 * * *", "Antarctica/Troll", datetime(2026, 10, 24, 21), datetime(2026, 10, 25, 23)),
		# node-cron issue 510: the last run of the day made the next one leap days ahead
		("55 * * * *", "Europe/Belgrade", datetime(2026, 3, 29, 21, 55, 1), datetime(2026, 3, 29, 22, 55)),
	],
)
def test_the_days_around_a_change(expression, time_zone, before, fire):
	assert cron.next_fire(expression, time_zone, before) == fire


def test_the_last_fires_before_a_change_are_those_that_were_fired():
	"""taichino/croniter 116 and pallets-eco/croniter 191: looking back gave other times than ahead."""
	ahead = fires_on("0 8 * * 1-5", "America/New_York", datetime(2018, 10, 25), 12)
	back = cron.last_fires("0 8 * * 1-5", "America/New_York", datetime(2018, 10, 25), ahead[-1], 12)
	assert back == ahead
	sunday = cron.last_fires(
		"0 8 * * 1-5", "America/New_York", datetime(2018, 10, 1), datetime(2018, 11, 4, 10), 1
	)
	assert sunday == [datetime(2018, 11, 2, 12)]


def test_a_naive_local_clock_would_wait_two_hours():
	"""As Frappe's own scheduler does: by wall time the hour after 01:00 is 02:00, two real hours later."""
	assert cron.next_fire("0 * * * *", "America/New_York", datetime(2026, 11, 1, 5)) == datetime(
		2026, 11, 1, 6
	)


# clocks that change in other ways


def test_half_an_hour_of_lord_howe():
	"""02:00 becomes 02:30 in October, and 02:00 becomes 01:30 in April."""
	assert fires_on("15 2 * * *", "Australia/Lord_Howe", datetime(2026, 10, 3), 2) == [
		datetime(2026, 10, 3, 15, 30),
		datetime(2026, 10, 4, 15, 15),
	]
	assert fires_on("45 * * * *", "Australia/Lord_Howe", datetime(2026, 4, 4, 14), 3) == [
		datetime(2026, 4, 4, 14, 45),
		datetime(2026, 4, 4, 15, 15),
		datetime(2026, 4, 4, 16, 15),
	]


@pytest.mark.parametrize(
	("time_zone", "day", "first"),
	[
		("America/Havana", datetime(2026, 3, 8, 4), datetime(2026, 3, 8, 5)),
		("Asia/Beirut", datetime(2026, 3, 28, 20), datetime(2026, 3, 28, 22)),
		("Africa/Cairo", datetime(2026, 4, 23, 20), datetime(2026, 4, 23, 22)),
		("America/Santiago", datetime(2026, 9, 6, 2), datetime(2026, 9, 6, 4)),
	],
)
def test_where_there_is_no_midnight_the_day_starts_with_its_first_moment(time_zone, day, first):
	assert cron.next_fire("0 0 * * *", time_zone, day) == first
	assert cron.next_fire("30 0 * * *", time_zone, day) == first


def test_a_rhythm_that_ends_before_midnight_comes_again_when_the_clock_goes_back_into_the_day():
	"""Beirut: midnight after 24 October 2026 becomes 23:00. By the wall, nothing matches for a year."""
	assert fires_on("30 * 24 10 *", "Asia/Beirut", datetime(2026, 10, 24, 20), 3) == [
		datetime(2026, 10, 24, 20, 30),
		datetime(2026, 10, 24, 21, 30),
		datetime(2027, 10, 23, 21, 30),
	]


def test_midnight_that_is_seen_twice():
	"""St. John's changed at 00:01 until 2011: the last hour came again after the next day had begun."""
	around = (datetime(2010, 11, 7, 2, 31), timedelta(hours=2))
	clock = clock_around("America/St_Johns", *around)
	for expression in ("0 0 * * *", "0 * * * *", "*/30 23,0 * * *", "0 0 7 11 *", "59 */23 6 11 *"):
		assert fires_around(expression, "America/St_Johns", *around) == plain_cron.fires(expression, clock)


def test_casablanca_changes_for_ramadan_only():
	"""Clocks go back before the month and forth after it: in 2025 in February and April."""
	found = changes("Africa/Casablanca", datetime(2025, 1, 1), datetime(2026, 1, 1))
	assert found == [datetime(2025, 2, 23, 2), datetime(2025, 4, 6, 2)]
	nine = [moment.hour for moment in fires_on("0 9 * * *", "Africa/Casablanca", datetime(2025, 2, 21), 47)]
	assert nine == [8] * 2 + [9] * 42 + [8] * 3


@pytest.mark.parametrize(
	("time_zone", "change", "day"),
	[
		("Pacific/Apia", datetime(2011, 12, 30, 10), "30 12"),
		("Pacific/Kwajalein", datetime(1993, 8, 21, 12), "21 8"),
		("Pacific/Kiritimati", datetime(1994, 12, 31, 10), "31 12"),
	],
)
def test_a_day_that_does_not_exist_is_made_up_for_at_the_start_of_the_next(time_zone, change, day):
	assert cron.next_fire(f"0 9 {day} *", time_zone, change - timedelta(days=3)) == change
	assert fires_around("0 9 * * *", time_zone, change, timedelta(hours=20))[1:] == [
		change,
		change + timedelta(hours=9),
	]
	by = timedelta(hours=27)
	for expression in ("0 9 * * *", "0 */6 * * *", "*/30 8-10 * * *"):
		walked = plain_cron.fires(expression, clock_around(time_zone, change, by))
		assert fires_around(expression, time_zone, change, by) == walked


def test_a_day_that_came_twice():
	"""Kwajalein moved over the date line in 1969, 23 hours back."""
	change, by = datetime(1969, 9, 30, 13), timedelta(hours=27)
	for expression in ("0 9 * * *", "0 */6 * * *", "*/30 8-10 30 9 *"):
		walked = plain_cron.fires(expression, clock_around("Pacific/Kwajalein", change, by))
		assert fires_around(expression, "Pacific/Kwajalein", change, by) == walked


def test_offsets_with_seconds():
	"""Monrovia was 44 minutes and 30 seconds behind until it jumped over them on 7 January 1972."""
	assert fires_on("30 0,12 * * *", "Africa/Monrovia", datetime(1972, 1, 6, 2), 3) == [
		datetime(1972, 1, 6, 13, 14, 30),
		datetime(1972, 1, 7, 0, 44, 30),
		datetime(1972, 1, 7, 12, 30),
	]
	assert cron.next_fire("*/20 * * * *", "Africa/Monrovia", datetime(1972, 1, 7, 0, 44)) == datetime(
		1972, 1, 7, 1
	)


def test_no_clock_is_changed_twice_within_three_days_nor_by_more_than_a_day():
	"""In all of the IANA database: what finding a change by halving, and leaping ahead, rest on."""
	for name in available_timezones():
		moments = _changes_in_the_database(name)
		for (earlier, _), (later, _) in pairwise(moments):
			assert later - earlier > zones.STEADY.total_seconds(), name
		assert all(abs(by) < zones.LONGEST_JUMP.total_seconds() for _, by in moments), name


def _changes_in_the_database(name: str) -> list[tuple[int, float]]:
	# only the Python version of zoneinfo shows its table
	zone = _zoneinfo.ZoneInfo(name)
	offsets = [kind.utcoff.total_seconds() for kind in zone._ttinfos]
	pairs = zip(zone._trans_utc[1:], offsets, offsets[1:], strict=False)
	return [(moment, after - before) for moment, before, after in pairs if after != before]
