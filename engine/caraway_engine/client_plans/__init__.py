"""Substrait plans that clients send, written as SQL.

Access rules, limits and the remedies for known faults read SQL, so a plan runs as SQL, too. Only
what is known to mean the same in SQL is written; all else is refused with the reason.
"""
