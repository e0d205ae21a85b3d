"""How much is measured: enough for a figure, much for the last word, a little to see that all works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
	rounds: int = 10
	jobs: int = 2000
	native_jobs: int = 50  # some tens a second
	singles: int = 500
	many: int = 10_000
	batch: int = 1000
	latencies: int = 100
	native_latencies: int = 10
	sleeping: int = 1000
	half_load: int = 1000
	native_half_load: int = 100
	cold_starts: int = 3
	memory_first: int = 1000
	memory_last: int = 5000
	traced: int = 1000
	waiting: int = 5000
	native_starts: int = 3
	schedules: int = 10_000
	schedules_due: int = 1000
	group_few: int = 2000
	group_many: int = 10_000


NORMAL = Counts()
FULL = Counts(
	jobs=5000, native_jobs=100, singles=2000, many=20_000, memory_last=20_000, cold_starts=5, native_starts=5
)
QUICK = Counts(
	rounds=1,
	jobs=100,
	native_jobs=10,
	singles=50,
	many=1000,
	latencies=10,
	native_latencies=2,
	sleeping=50,
	half_load=50,
	native_half_load=10,
	cold_starts=1,
	memory_first=100,
	memory_last=300,
	traced=100,
	waiting=300,
	native_starts=1,
	schedules=300,
	schedules_due=100,
	group_few=50,
	group_many=100,
)
