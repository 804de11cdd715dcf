"""Use cases of projects. They take a session, and know no HTTP."""
