"""`bin/test`: the whole suite on the embedded site, or with --bench inside an existing bench."""

import argparse
import sys

from homes import bench, embedded, environment, style
from homes.embedded import ROOT

# pytest's options that people use: a mistake in them is answered before anything is made
WITHOUT_VALUE = """
-x -s -l -q -v --exitfirst --quiet --verbose --showlocals --lf --last-failed --ff --failed-first
--nf --new-first --sw --stepwise --pdb --trace --co --collect-only --setup-show --fixtures --markers
--cache-clear --full-trace
"""
WITH_VALUE = """
-k -m -r -p -o -W --tb --maxfail --durations --durations-min --deselect --ignore --basetemp --color --junitxml
--capture --show-capture --log-cli-level --hypothesis-seed --hypothesis-profile
"""


def main() -> int:
	if any(argument.split("=")[0] == "--bench" for argument in sys.argv[1:]):
		return bench.main()
	arguments = _parse()
	environment.enter()
	style.check()
	return embedded.run(lambda home: _pytest(home, arguments))


def _pytest(home: embedded.Home, arguments: argparse.Namespace) -> list[str]:
	command = [sys.executable, "-m", "pytest", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")]
	command.append(f"--basetemp={home.folder / 'temporary'}")
	# pytest runs in the sites folder: paths are made whole
	paths = [str(ROOT / path) for path in arguments.paths or ["."]]
	return [*command, *arguments.options, *arguments.behind, *paths]


class _Keep(argparse.Action):
	"""The option goes to pytest as it is."""

	def __call__(self, _parser, arguments, value, option=None):
		arguments.options += [option, value] if self.nargs is None else [option]


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(
		prog="bin/test",
		usage="bin/test [OPTIONS] [PATH ...] [-- OPTIONS OF PYTEST]\n       bin/test --bench DIR [--help]",
		description=__doc__,
		epilog=f"Options of pytest that need no -- before them: {WITHOUT_VALUE} {WITH_VALUE}",
		allow_abbrev=False,
	)
	parser.set_defaults(options=[])
	parser.add_argument("--first-runs", action=_Keep, nargs=0, help="test first runs too; takes minutes")
	parser.add_argument("--long", action=_Keep, nargs=0, help="run tests that wait for minutes, too")
	parser.add_argument(
		"paths", nargs="*", metavar="PATH", help="files, folders or names of tests, as for pytest"
	)
	for names, how_many in ((WITHOUT_VALUE, 0), (WITH_VALUE, None)):
		for name in names.split():
			parser.add_argument(name, action=_Keep, nargs=how_many, help=argparse.SUPPRESS)
	given = sys.argv[1:]
	end = given.index("--") if "--" in given else len(given)
	arguments = parser.parse_intermixed_args(given[:end])
	arguments.behind = given[end + 1 :]
	for path in arguments.paths:
		if not (ROOT / path.split("::")[0]).exists():
			parser.error(f"there is no {path} in {ROOT}")
	return arguments


if __name__ == "__main__":
	sys.exit(main())
