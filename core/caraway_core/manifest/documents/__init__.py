"""YAML files as trees with lines: their keys, the files that they refer to, their excerpts."""
