"""Says how rankings of a table run: by which index, or by a statement and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from caraway_assist.search import statements
from caraway_assist.search.statements import SearchStatement
from caraway_assist.search.tables import Ranking, TableRanker
from caraway_core.errors import NotDistributableError
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.protocols.searching import SearchWay
from caraway_core.sqltext.searching import SearchMethod
from caraway_core.statements import ReadPoint

_KINDS = {SearchMethod.VECTOR: "vectors", SearchMethod.TEXT: "words"}


@dataclass(frozen=True, slots=True)
class RankingWay:
    """The way in which a ranking runs; `index` is the kind of index, or "none"."""

    index: str
    details: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def by_statement(cls, why: str) -> "RankingWay":
        """Return the way without an index."""
        return cls("none", {"because": why})


class RankingWays:
    """Asks the executors that search how they would."""

    def __init__(self, ranker: TableRanker) -> None:
        self._ranker = ranker

    async def choose_way(
        self, made: Sequence[Ranking], where: str | None, at: ReadPoint
    ) -> SearchWay:
        """Return how the rankings of a search run together; nothing is searched.

        Raises:
            CatalogMovedError: the catalog of `at` is no longer available.
            QueryError: the rows do not fit in memory.
        """
        column = ", ".join(dict.fromkeys(name for each in made for name in each.columns))
        ways = [(each, await self._of(each, where, at)) for each in made]
        if len(ways) == 1:
            return SearchWay(column, ways[0][1].index, ways[0][1].details)
        details = {
            f"{each.method}_{name}": value
            for each, way in ways
            for name, value in ({"index": way.index} | dict(way.details)).items()
        }
        return SearchWay(column, " and ".join(dict.fromkeys(w.index for _, w in ways)), details)

    async def build(self, ranking: Ranking, at: ReadPoint) -> RankingWay:
        """Let the executors build the index of a ranking; return how it answers.

        Raises:
            CatalogMovedError, QueryError: as in `of`.
        """
        return await self._of(ranking, None, at, is_built=True)

    async def _of(
        self, ranking: Ranking, where: str | None, at: ReadPoint, *, is_built: bool = False
    ) -> RankingWay:
        table = ranking.table
        by: VectorOrder | WordOrder
        if ranking.method is SearchMethod.VECTOR:
            column = table.embedded_column(*ranking.columns)
            if column.vector_column not in table.schema.names:
                return RankingWay.by_statement("its vectors are not stored")
            if not table.vectors.is_indexed:
                return RankingWay.by_statement("the manifest disables the index of vectors")
            settings = table.vectors
            by = VectorOrder(column.vector_column, b"", settings.metric, settings.recall)
        else:
            language = table.keyword_settings.language
            boosts = (1.0,) * len(ranking.columns)
            by = WordOrder(ranking.columns, "", language, boosts)
        order = IndexOrder(table.name, by, where=where, is_required=True)
        order = replace(order, is_explained=True, is_built=is_built)
        # It does not run. But if the order ends a process, this SQL is refused from then on.
        sql = f"SELECT 'index' FROM {statements.quoted_table(table.name)}"
        statement = SearchStatement(sql, index=order)
        try:
            found, _ = await self._ranker.read(statement, at)
        except NotDistributableError as exc:
            return RankingWay.by_statement(exc.message)
        sums = {name: sum(found.column(name).to_pylist()) for name in found.column_names}
        details = {"answers": "exact"}
        if isinstance(by, VectorOrder) and sums["is_exact"] < found.num_rows:
            details = {"answers": "approximate", "recall": f"{by.recall:g}"}
        details |= {
            "segments": str(sums["segments"]),
            "probes": "all",
            "executors": str(found.num_rows),
            "rows": str(sums["rows"] + sums["missing"]),
        }
        if sums["missing"]:
            details["not_indexed"] = str(sums["missing"])
        if where is not None:
            details["filtered_by"] = "mask"
        return RankingWay(_KINDS[ranking.method], details)
