"""The app whose jobs are measured: handlers belong to an app that is installed, as those of any user do."""

__version__ = "0.1.0"
