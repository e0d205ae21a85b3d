"""Cron expressions in all shapes about which every implementation agrees, for property tests."""

from hypothesis import strategies as st


@st.composite
def fields(draw, lowest: int, highest: int, starred: bool = True) -> str:
	"""Lists of values, ranges and steps, in what all implementations agree about."""
	if starred and draw(st.booleans()):
		step = draw(st.integers(1, min(highest, 20)))
		return draw(st.sampled_from(["*", f"*/{step}"]))
	items = []
	for _ in range(draw(st.integers(1, 3))):
		first = draw(st.integers(lowest, highest - 1))
		last = draw(st.integers(first + 1, highest))
		step = draw(st.integers(1, 5))
		items.append(draw(st.sampled_from([str(first), f"{first}-{last}", f"{first}-{last}/{step}"])))
	return ",".join(items)


ANY_DAY = fields(1, 31)


@st.composite
def expressions(draw, days: st.SearchStrategy[str] = ANY_DAY) -> str:
	day, weekday = draw(
		st.sampled_from(
			[
				("*", "*"),
				(draw(days), "*"),
				("*", draw(fields(0, 6))),
				(draw(fields(1, 28, starred=False)), draw(fields(0, 6, starred=False))),
			]
		)
	)
	month = draw(st.one_of(st.just("*"), fields(1, 12)))
	return f"{draw(fields(0, 59))} {draw(fields(0, 23))} {day} {month} {weekday}"
