"""The scheduler proper: catalog, membership, dispatch, queries, jobs, history, readiness."""
