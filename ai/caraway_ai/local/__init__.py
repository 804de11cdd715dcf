"""Models that run on this machine: each in a process of its own, because their code is native."""
