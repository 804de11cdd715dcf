"""Asynchronous queries: durable jobs that any scheduler can finish and answer.

`model` defines jobs and `states` their transitions. `records` stores jobs in the state store and
`replica` follows them there. `queue` orders them, `runner` runs one, and `service` serves the API.
"""
