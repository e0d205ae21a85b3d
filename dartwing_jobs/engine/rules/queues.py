"""The seven standard queues, as they are made when a site lacks them."""

CRITICAL_QUEUE = "q:critical"
MAINTENANCE_QUEUE = "q:maintenance"
DEAD_LETTERS = "q:deadletter"
STANDARD_QUEUES = (
	{
		"queue_name": CRITICAL_QUEUE,
		"rq_queue": "short",
		"max_waiting": 100,
		"max_wait_seconds": 5,
		"description": "Work that unblocks core flows. Kept small, and only for job types that may use it.",
	},
	{
		"queue_name": "q:default",
		"rq_queue": "default",
		"max_wait_seconds": 60,
		"description": "What follows a user's write.",
	},
	{
		"queue_name": "q:notifications",
		"rq_queue": "short",
		"max_wait_seconds": 60,
		"description": "Delivery of mail, messages and other notifications.",
	},
	{
		"queue_name": "q:planning",
		"rq_queue": "long",
		"max_wait_seconds": 300,
		"description": "Computations that prepare plans and proposals.",
	},
	{
		"queue_name": "q:exports",
		"rq_queue": "long",
		"max_wait_seconds": 600,
		"description": "Imports and exports of files.",
	},
	{
		"queue_name": MAINTENANCE_QUEUE,
		"rq_queue": "long",
		"max_wait_seconds": 3600,
		"description": "Scheduled housekeeping.",
	},
	{
		"queue_name": DEAD_LETTERS,
		"rq_queue": "long",
		"description": "Where poison jobs rest until somebody replays or discards them.",
	},
)
STANDARD_QUEUE_NAMES = frozenset(queue["queue_name"] for queue in STANDARD_QUEUES)
