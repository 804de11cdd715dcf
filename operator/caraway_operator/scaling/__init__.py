"""How many executors there shall be, and which one goes next: pure decisions, no I/O, no clock."""
