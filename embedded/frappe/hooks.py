"""The framework's own hooks: none."""
