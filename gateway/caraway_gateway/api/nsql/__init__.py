"""The routes of `/v1/nsql`: questions in plain words, and what a model is told of the data."""
