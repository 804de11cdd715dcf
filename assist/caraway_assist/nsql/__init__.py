"""Questions in plain words over the data: which model, which tables, and how statements run.

How a statement is made is in `caraway_ai.text_to_sql`.
"""

from caraway_assist.nsql.service import DataQuestion, NsqlService

__all__ = ["DataQuestion", "NsqlService"]
