"""Positions in the binary log of MariaDB: the last transaction of each domain, as text."""

import json
from dataclasses import dataclass, replace

from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class MysqlPosition:
    """A place in the log: after all transactions up to `gtid`, and `taken` changes of the next one.

    `is_loading` means that the rows before it are not complete.
    """

    table: str
    gtid: str
    taken: int = 0
    is_loading: bool = False

    def text(self) -> str:
        """Encode the position as text."""
        return json.dumps([self.table, self.gtid, self.taken, self.is_loading])

    def after(self, gtid: str) -> "MysqlPosition":
        """Return the position after one more transaction."""
        domain = gtid.partition("-")[0]
        others = [
            each for each in self.gtid.split(",") if each and each.partition("-")[0] != domain
        ]
        return replace(self, gtid=",".join((*others, gtid)), taken=0)


def read(text: str, table: str) -> MysqlPosition:
    """Parse the result of `MysqlPosition.text`.

    Raises:
        PositionLostError: it is of another table or another kind of source.
    """
    try:
        found = MysqlPosition(*json.loads(text))
    except (ValueError, TypeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not one of MariaDB; reloading"
        ) from exc
    if found.table != table:
        raise PositionLostError(f"the stored rows come from table '{found.table}'; reloading")
    return found
