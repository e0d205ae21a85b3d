from notes_app.steps import record


def execute() -> None:
	record("patch")
