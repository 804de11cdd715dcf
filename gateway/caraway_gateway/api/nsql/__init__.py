"""The routes of `/v1/nsql`: questions in plain words, and the data as models see it."""
