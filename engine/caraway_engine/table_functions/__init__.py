"""Table functions of search: reads their calls, and finds the filter and columns of each.

A search runs before its statement, because it needs the whole table. While a statement is planned,
the name of an empty table stands for each call. The optimized plan then says which conditions and
columns belong to the search. For running, rows take the place of the empty table.
"""
