"""The engine. The files here are the way of a job; what they need beside is in folders, by concern."""
