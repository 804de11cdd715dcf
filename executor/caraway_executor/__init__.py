"""The data plane: holds tables and runs statements over them with the engine."""
