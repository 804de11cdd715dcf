"""The data plane: keeps tables in memory and runs statements over them with the engine."""
