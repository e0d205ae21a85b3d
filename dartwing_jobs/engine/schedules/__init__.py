"""Schedules: `schedules` is what people do with them, `recurring` what programs ask for.

`ticks` takes what is due (`ticker` while all workers are busy), `missed`, `overlaps` and `grounds` decide,
`fire_jobs` submits, `fires` tells.
"""

from dartwing_jobs.engine.schedules.schedules import preview

__all__ = ["preview"]  # the docs name it here
