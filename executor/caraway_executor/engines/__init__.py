"""Engine processes: run statements in separate processes, which can be killed and replaced.

The process that serves the API holds one `Engines`. It starts a fork server, which has imported
everything and runs nothing, and which forks the engine processes. Each of those serves one
`LocalExecutor` over a Unix socket; `EngineProcess` is the other end of that socket.
"""
