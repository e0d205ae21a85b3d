"""`bin/benchmark`: measures, shows the tables, keeps every sample in a JSON file."""

import argparse
import contextlib
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import commits, compare, counts, docs, places, report, rounds
from benchmarks.measurements import MEASUREMENTS, Measurement
from benchmarks.results import Results
from homes import environment, guardian


def main() -> int:
	arguments = _parse()
	environment.enter()
	return guardian.watched(lambda: run(arguments))


def run(arguments: argparse.Namespace) -> int:
	if arguments.write_docs:
		docs.write()
		return 0
	if arguments.compare:
		return compare_commits(arguments)
	results = Results()
	facts = rounds.machine_facts()
	with _open_place(arguments) as place:
		results.facts = {"home": place.title, **facts}
		measure(place, arguments.only, _counts(arguments), results)
	return _show(results, report.text(results), arguments.json or _file(arguments, place.name))


def compare_commits(arguments: argparse.Namespace) -> int:
	results = compare.compare(
		arguments.bench, arguments.compare, arguments.db, arguments.only, _counts(arguments)
	)
	text = compare.text(results, arguments.compare)
	path = docs.RESULTS / f"partial-compare-{arguments.compare}.json"
	return _show(results, text, arguments.json or path)


def _show(results: Results, text: str, path: Path) -> int:
	print("\n" + text)
	results.write(path)
	print(f"\nEvery sample is in {path}.")
	return 1 if results.not_run else 0


def measure(
	place: places.Place, measurements: list[Measurement], how_many: counts.Counts, results: Results
) -> None:
	wanted = {name for measurement in measurements for name in measurement.systems}
	with rounds.running_systems(place, wanted) as systems:
		rounds.measure(systems, measurements, how_many, results)


def _open_place(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[places.Place]:
	if arguments.bench:
		return places.bench_place(arguments.bench, arguments.site, arguments.db)
	return places.embedded_place()


def _counts(arguments: argparse.Namespace) -> counts.Counts:
	chosen = counts.QUICK if arguments.quick else counts.FULL if arguments.full else counts.NORMAL
	return replace(chosen, rounds=arguments.rounds or chosen.rounds)


def _file(arguments: argparse.Namespace, place: str) -> Path:
	"""Only whole runs may be published; others must not overwrite them."""
	partly = "partial-" if len(arguments.only) < len(MEASUREMENTS) else ""
	return docs.RESULTS / f"{'quick-' if arguments.quick else partly}{place}.json"


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(prog="bin/benchmark", description=__doc__)
	parser.add_argument("--bench", type=Path, metavar="DIR", help="measure real Frappe in this bench")
	parser.add_argument("--site", help="a site of it that allows tests; without it one is made and removed")
	parser.add_argument("--db", choices=["mariadb", "postgres"], default="mariadb", help="of the site made")
	names = ", ".join(measurement.name for measurement in MEASUREMENTS)
	parser.add_argument("--only", type=_chosen, metavar="NAME,…", help=names)
	parser.add_argument(
		"--compare",
		metavar="COMMIT",
		help="measure this commit's app beside the present one, nothing else; only throughput unless told",
	)
	parser.add_argument("--rounds", type=int, help="how often each is measured; 10 unless quick")
	size = parser.add_mutually_exclusive_group()
	size.add_argument("--quick", action="store_true", help="small counts, one round: does everything run?")
	size.add_argument("--full", action="store_true", help="large counts, memory after 20,000 jobs")
	parser.add_argument("--json", type=Path, metavar="PATH", help="where to keep the samples")
	parser.add_argument("--write-docs", action="store_true", help="write docs/benchmarks.md, measure nothing")
	arguments = parser.parse_args()
	if arguments.site and not arguments.bench:
		parser.error("--site is a site of a bench: name it with --bench")
	if arguments.compare and (arguments.site or not arguments.bench):
		parser.error("--compare makes two sites of its own in a bench: name it with --bench, without --site")
	arguments.only = arguments.only or _unless_told(arguments)
	if arguments.compare:
		_check_comparison(arguments, parser)
	return arguments


def _check_comparison(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
	if inside := {one.name for one in arguments.only} - set(compare.COMPARABLE):
		parser.error(f"{', '.join(sorted(inside))} cannot be compared: it needs parts of the present engine")
	try:
		arguments.compare = commits.resolve(arguments.compare)
	except ValueError as error:
		parser.error(str(error))


def _unless_told(arguments: argparse.Namespace) -> list[Measurement]:
	return _chosen("throughput") if arguments.compare else list(MEASUREMENTS)


def _chosen(names: str) -> list[Measurement]:
	known = {measurement.name: measurement for measurement in MEASUREMENTS}
	if unknown := set(names.split(",")) - set(known):
		raise argparse.ArgumentTypeError(
			f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}"
		)
	return [known[name] for name in known if name in names.split(",")]


if __name__ == "__main__":
	sys.exit(main())
