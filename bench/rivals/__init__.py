"""The engines to compare with: programs that run in environments of their own."""
