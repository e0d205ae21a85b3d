"""The job systems, one file each. Each runs in a process and an environment of its own."""
