"""Executors behind one protocol: calls over Ray, pages of rows, files of the scheduler."""
