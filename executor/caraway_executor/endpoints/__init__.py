"""The endpoints of an executor: short calls of schedulers, parts of answers, metrics, probes."""
