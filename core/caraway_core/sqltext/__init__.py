"""Reads SQL text where no plan exists: one grammar, one lexer, and functions on top of them.

Everything runs in linear time for any text, and uses only the standard library, because the client
uses it as well. Where a plan exists, the plan says what a statement does.
"""
