"""Use cases of organizations, members and plans. They take a session, and know no HTTP."""
