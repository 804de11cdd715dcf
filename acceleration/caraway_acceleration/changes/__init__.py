"""Changes of datasets: from requests and sources into the log, until statements read them."""
