"""A system in a process of its own: requests come by standard input, answers go to standard output.

`python -m benchmarks.systems.driver MODULE CLASS FOLDER`
"""

import contextlib
import json
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path


class Interrupted(BaseException):
	"""Whoever asked does not want the answer any more; what runs is ended in order."""


def main() -> None:
	signal.signal(signal.SIGTERM, _interrupt)
	module, name, folder = sys.argv[1:]
	answers = os.fdopen(os.dup(1), "w")
	os.dup2(2, 1)  # what libraries print must not look like an answer
	system = None
	with contextlib.suppress(Interrupted):
		for line in sys.stdin:
			try:
				system = system or getattr(import_module(module), name)(Path(folder))
				answer = {"result": _ask(system, **json.loads(line))}
			except Exception as error:
				answer = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
			print(json.dumps(answer), file=answers, flush=True)
	if system:
		system.close()


def _ask(system: object, method: str, arguments: dict) -> object:
	return getattr(system, method)(**arguments)


def _interrupt(_number: int, _frame: object) -> None:
	signal.signal(signal.SIGTERM, signal.SIG_IGN)
	raise Interrupted


if __name__ == "__main__":
	main()
