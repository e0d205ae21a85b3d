"""Commands of bench. It imports this file before it runs any command: that is how workers get a lookout."""

import sys

from dartwing_jobs import lookout

commands: list = []

lookout.accompany(sys.argv)
