"""Statements and queries: run over Flight or HTTP, and again where that is safe."""
