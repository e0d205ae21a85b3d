"""These tests start the commands as people do, as processes; they never touch the suite's site."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def site():
	"""Like clean_slate, takes the place of the suite's own."""


clean_slate = site
