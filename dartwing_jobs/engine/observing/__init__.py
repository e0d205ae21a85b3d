"""What tells others how things go: counters and gauges behind the metrics, the journal, traces, listeners."""
