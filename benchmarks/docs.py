"""Writes docs/benchmarks.md from the stored results, so that no figure in it is typed by hand."""

from dataclasses import asdict
from pathlib import Path

from benchmarks import report
from benchmarks.counts import NORMAL
from benchmarks.results import Results

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
NOTHING_YET = "Nothing has been measured yet.\n"
# only whole runs are published; what else lies in the folder is for whoever measured it
PUBLISHED = ("frappe-mariadb", "frappe-postgres", "embedded")

INTRODUCTION = ROOT / "benchmarks" / "introduction.md"


def write(path: Path = PAGE, folder: Path = RESULTS) -> None:
	path.write_text(page(published(folder)))


def published(folder: Path = RESULTS) -> dict[str, Results]:
	files = {name: folder / f"{name}.json" for name in PUBLISHED}
	return {name: Results.read(path) for name, path in files.items() if path.exists()}


def page(all_results: dict[str, Results]) -> str:
	measured = next((results.counts for results in all_results.values()), {})
	counts = asdict(NORMAL) | measured  # results may be older than some of what is counted
	sections = [section(results) for results in all_results.values()] or [NOTHING_YET]
	return "\n".join([INTRODUCTION.read_text().format(**counts), *sections])


def section(results: Results) -> str:
	facts = "\n".join(f"- {line}" for line in [*report.fact_lines(results), *report.not_run_lines(results)])
	tables = [f"### {table.title}\n\n{table.text()}\n" for table in report.tables(results)]
	return "\n".join([f"## On {results.facts['home']}\n", *tables, f"### Circumstances\n\n{facts}\n"])
