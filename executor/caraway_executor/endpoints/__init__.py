"""What an executor serves: short calls of schedulers, parts of answers, metrics and probes."""
