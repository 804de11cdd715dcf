"""Models on executors: where their copies are, and which copy answers a call."""
