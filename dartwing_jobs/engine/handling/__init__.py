"""Handlers, and what surrounds one that runs: context, deadline, hooks, steps, files, what it may write."""
