"""Sample handlers: what a job looks like from the inside."""


def execute_sample_job(parameters: dict, context) -> dict:
	"""Counts to `steps`, reporting each one."""
	steps = int(parameters.get("steps", 3))
	for step in range(1, steps + 1):
		context.progress(100 * step / steps, f"Step {step} of {steps}")
	return {"steps": steps}
