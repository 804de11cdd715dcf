"""The routes of a runtime other than statements and asynchronous queries."""
