"""`bin/demo`: the product at work on an embedded site that is made for it, and gone afterwards."""

import argparse
import sys

from homes import embedded, environment, own_apps, process


def main() -> int:
	arguments = _parse()
	environment.enter()
	show = [sys.executable, "-m", "homes.show", *sys.argv[1:]]
	return embedded.run(lambda _home: show, apps=[own_apps.OURS, *arguments.app])


def _parse() -> argparse.Namespace:
	parser = options()
	arguments = parser.parse_args()
	if arguments.port and (reason := process.why_not_free(arguments.port)):
		parser.error(
			f"port {arguments.port} cannot be used: {reason}. Name another one, or none to have one found"
		)
	return arguments


def options() -> argparse.ArgumentParser:
	parser = argparse.ArgumentParser(prog="bin/demo", description="The app at work on the embedded site.")
	parser.add_argument(
		"--once", action="store_true", help="end when all jobs have ended; fail unless as expected"
	)
	parser.add_argument("--app", action="append", type=own_apps.given, default=[], help=own_apps.HELP)
	parser.add_argument("--port", type=_port, help="where to serve; 8000, or a free one if that is taken")
	return parser


def _port(text: str) -> int:
	if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
		raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
	return int(text)


if __name__ == "__main__":
	sys.exit(main())
