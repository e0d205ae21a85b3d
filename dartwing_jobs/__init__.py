"""Dartwing Jobs: durable, visible, multi-tenant background jobs for Frappe."""

__version__ = "0.1.0"
