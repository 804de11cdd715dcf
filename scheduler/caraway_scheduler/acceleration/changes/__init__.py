"""Changes of datasets: from requests and sources into the log, applied and readable."""
