"""The 43 queries of ClickBench, in words that both engines know.

The table has a hundredth of the published rows, so limits that count rows of groups, and offsets,
are a hundredth of the published ones. `length` counts characters in both engines.
"""

from typing import NamedTuple

from bench.hits import COUNTER, REFERER_HASH, URL_HASH, USER

_MANY = 1_000
_SEARCHED = "\"SearchPhrase\" <> ''"
_JULY = "\"EventDate\" >= '2013-07-01' AND \"EventDate\" <= '2013-07-31'"
_VIEWED = f'"CounterID" = {COUNTER} AND {_JULY} AND "IsRefresh" = 0'
_SITE = r"""regexp_replace("Referer", '^https?://(?:www\.)?([^/]+)/.*$', '\1')"""
_MINUTE = "date_trunc('minute', \"EventTime\")"
_HITS = 'count(*) AS c, sum("IsRefresh"), avg("ResolutionWidth")'


class Query(NamedTuple):
    """A query in parts, so that its order can be made complete to compare answers."""

    rows: str
    """All before ORDER BY."""
    order: str = ""
    limit: str = ""

    @property
    def sql(self) -> str:
        """The query as it is measured."""
        order = f"ORDER BY {self.order}" if self.order else ""
        return " ".join(each for each in (self.rows, order, self.limit) if each)

    def compared(self, columns: int) -> str:
        """Return the query with an order in which no two rows are equal."""
        if columns > 100:
            keys = [self.order, '"WatchID"']
        else:
            keys = [self.order, *map(str, range(1, columns + 1))]
        order = ", ".join(each for each in keys if each)
        return f"{self.rows} ORDER BY {order} {self.limit}"


def _counted(columns: str, where: str = "", order: str = "c DESC", limit: str = "LIMIT 10",
             what: str = "count(*) AS c") -> Query:  # fmt: skip
    """Return a query that counts the rows or the users of groups."""
    condition = f" WHERE {where}" if where else ""
    names = ", ".join(str(number) for number in range(1, columns.count(",") + 2))
    return Query(f"SELECT {columns}, {what} FROM hits{condition} GROUP BY {names}", order, limit)


def _users(columns: str, where: str = "") -> Query:
    return _counted(columns, where, "u DESC", what='count(DISTINCT "UserID") AS u')


def _views(columns: str, where: str, offset: int = 0) -> Query:
    limit = f"LIMIT 10 OFFSET {offset}" if offset else "LIMIT 10"
    return _counted(columns, f"{_VIEWED} AND {where}" if where else _VIEWED, "views DESC", limit,
                    what="count(*) AS views")  # fmt: skip


def _all(expressions: str, where: str = "") -> Query:
    return Query(f"SELECT {expressions} FROM hits" + (f" WHERE {where}" if where else ""))


def _first(columns: str, where: str, order: str) -> Query:
    return Query(f"SELECT {columns} FROM hits WHERE {where}", order, "LIMIT 10")


QUERIES = (
    _all("count(*)"),
    _all("count(*)", '"AdvEngineID" <> 0'),
    _all('sum("AdvEngineID"), count(*), avg("ResolutionWidth")'),
    _all('avg("UserID")'),
    _all('count(DISTINCT "UserID")'),
    _all('count(DISTINCT "SearchPhrase")'),
    _all('min("EventDate"), max("EventDate")'),
    _counted('"AdvEngineID"', '"AdvEngineID" <> 0', limit=""),
    _users('"RegionID"'),
    Query('SELECT "RegionID", sum("AdvEngineID"), count(*) AS c, avg("ResolutionWidth"), '
          'count(DISTINCT "UserID") FROM hits GROUP BY "RegionID"', "c DESC", "LIMIT 10"),
    _users('"MobilePhoneModel"', "\"MobilePhoneModel\" <> ''"),
    _users('"MobilePhone", "MobilePhoneModel"', "\"MobilePhoneModel\" <> ''"),
    _counted('"SearchPhrase"', _SEARCHED),
    _users('"SearchPhrase"', _SEARCHED),
    _counted('"SearchEngineID", "SearchPhrase"', _SEARCHED),
    _counted('"UserID"'),
    _counted('"UserID", "SearchPhrase"'),
    _counted('"UserID", "SearchPhrase"', order=""),
    _counted('"UserID", extract(minute FROM "EventTime") AS m, "SearchPhrase"'),
    _all('"UserID"', f'"UserID" = {USER}'),
    _all("count(*)", "\"URL\" LIKE '%google%'"),
    _counted('"SearchPhrase"', f"\"URL\" LIKE '%google%' AND {_SEARCHED}",
             what='min("URL"), count(*) AS c'),
    _counted('"SearchPhrase"',
             f"\"Title\" LIKE '%Google%' AND \"URL\" NOT LIKE '%.google.%' AND {_SEARCHED}",
             what='min("URL"), min("Title"), count(*) AS c, count(DISTINCT "UserID")'),
    _first("*", "\"URL\" LIKE '%google%'", '"EventTime"'),
    _first('"SearchPhrase"', _SEARCHED, '"EventTime"'),
    _first('"SearchPhrase"', _SEARCHED, '"SearchPhrase"'),
    _first('"SearchPhrase"', _SEARCHED, '"EventTime", "SearchPhrase"'),
    Query('SELECT "CounterID", avg(length("URL")) AS l, count(*) AS c FROM hits '
          f"WHERE \"URL\" <> '' GROUP BY \"CounterID\" HAVING count(*) > {_MANY}",
          "l DESC", "LIMIT 25"),
    Query(f'SELECT {_SITE} AS k, avg(length("Referer")) AS l, count(*) AS c, min("Referer") '
          f"FROM hits WHERE \"Referer\" <> '' GROUP BY k HAVING count(*) > {_MANY}",
          "l DESC", "LIMIT 25"),
    _all(", ".join(f'sum("ResolutionWidth" + {more})' for more in range(90))),
    _counted('"SearchEngineID", "ClientIP"', _SEARCHED, what=_HITS),
    _counted('"WatchID", "ClientIP"', _SEARCHED, what=_HITS),
    _counted('"WatchID", "ClientIP"', what=_HITS),
    _counted('"URL"'),
    _counted('1, "URL"'),
    _counted(", ".join(['"ClientIP"', *(f'"ClientIP" - {less}' for less in (1, 2, 3))])),
    _views('"URL"', "\"DontCountHits\" = 0 AND \"URL\" <> ''"),
    _views('"Title"', "\"DontCountHits\" = 0 AND \"Title\" <> ''"),
    _views('"URL"', '"IsLink" <> 0 AND "IsDownload" = 0', 10),
    _views('"TraficSourceID", "SearchEngineID", "AdvEngineID", CASE WHEN "SearchEngineID" = 0 '
           "AND \"AdvEngineID\" = 0 THEN \"Referer\" ELSE '' END AS src, \"URL\"", "", 10),
    _views('"URLHash", "EventDate"',
           f'"TraficSourceID" IN (-1, 6) AND "RefererHash" = {REFERER_HASH}', 1),
    _views('"WindowClientWidth", "WindowClientHeight"',
           f'"DontCountHits" = 0 AND "URLHash" = {URL_HASH}', 100),
    Query(f'SELECT {_MINUTE} AS minute, count(*) AS views FROM hits WHERE "CounterID" = {COUNTER} '
          "AND \"EventDate\" >= '2013-07-14' AND \"EventDate\" <= '2013-07-15' "
          f'AND "IsRefresh" = 0 AND "DontCountHits" = 0 GROUP BY {_MINUTE}',
          "minute", "LIMIT 10 OFFSET 10"),
)  # fmt: skip
