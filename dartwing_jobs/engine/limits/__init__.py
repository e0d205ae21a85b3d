"""How many jobs may wait, run and start: who is refused, who is held until there is room, who counts."""
