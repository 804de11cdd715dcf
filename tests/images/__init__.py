"""Tests of the Dockerfile, its scripts and compose.yaml, without a container engine."""
