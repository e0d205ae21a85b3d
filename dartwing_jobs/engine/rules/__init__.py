"""What was decided about kinds of work: priorities, categories, queues, job types, retries."""
