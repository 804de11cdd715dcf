"""The control plane: the HTTP API, the catalog, admission, dispatch, history and metrics."""
