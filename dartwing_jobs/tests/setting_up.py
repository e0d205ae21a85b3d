"""A handler whose module changes its process when it is imported, as some libraries do."""

import os
import sys

from dartwing_jobs import job_handler

os.environ["DARTWING_SET_UP"] = "once"
sys.path.append("/dartwing/set/up")


@job_handler
def work(parameters, context):
	return os.getpid()
