"""Tests of the chart with Helm 3 and Helm 4."""
