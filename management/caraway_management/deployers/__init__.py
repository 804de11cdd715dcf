"""Where runtimes of projects run: as processes of this machine, or on Kubernetes."""
