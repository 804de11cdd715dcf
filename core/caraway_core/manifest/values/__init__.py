"""The values of a manifest as frozen dataclasses; most are the sections of files themselves."""
