"""The example of README.md, as it is printed there."""

import re
from pathlib import Path

import dartwing_jobs

README = Path(dartwing_jobs.__file__).parents[1] / "README.md"
PROMPT = "at the prompt"


def blocks() -> dict[str, str]:
	"""The blocks of Python, by what their first lines say that they are."""
	found = re.findall(r"^```python\n# ([^\n:]+)[^\n]*\n(.*?)^```", README.read_text(), re.S | re.M)
	return dict(found)


def write_app(folder: Path) -> Path:
	"""Makes the app of the example; returns its folder."""
	for name, text in blocks().items():
		if name.endswith(".py"):
			(folder / name).parent.mkdir(exist_ok=True)
			(folder / name).write_text(text)
	(folder / "my_app" / "__init__.py").touch()
	return folder / "my_app"
