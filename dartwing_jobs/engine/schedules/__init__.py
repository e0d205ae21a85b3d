"""Schedules: `schedules` is what people do with them, `recurring` what programs ask for.

`ticks` takes what is due, `missed`, `overlaps` and `grounds` decide, `fire_jobs` submits, `fires` tells.
"""
