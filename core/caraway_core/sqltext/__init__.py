"""Reads SQL text, where there is no plan of it: one grammar, one lexer, and what is built on them.

Everything here runs in linear time, whatever the text is, and needs no more than the standard
library: the client reads its scripts with it. What a statement does is asked of its plan.
"""
