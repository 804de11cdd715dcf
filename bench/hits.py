"""Generates a sample of `hits`, the table of ClickBench, with the shapes of the published one.

The published file cannot be fetched from everywhere, so its rows are made up. Known of it, and
kept: 105 columns; rows in the order of CounterID, EventDate and UserID; per million rows about
180,000 users, URLs and referers, 94,000 titles, 60,000 search phrases; 13 % of rows with a search
phrase, 0.6 % with an advertisement, 6 % with the model of a phone, 0.016 % with `google` in the
URL; one URL with 3 % of the rows, one counter with 9 %, and counter 62 with 0.7 %. Texts are of
words in two alphabets, about as long as the published ones.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench import hits_columns
from bench.hits_columns import SCHEMA

ROWS = 1_000_000
COUNTER, USER = 62, 435090932899640449
URL_HASH, REFERER_HASH = 2868770270353813622, 3594120000172545465
_ROW_GROUP = 250_000
_FOLDER = Path(__file__).parent / "data" / "hits"
_FIRST_DAY, _DAYS = 15_888, 30
"""2013-07-02, in days since 1970."""
_LATIN = "ba be bo da ki la le ma mo na ni po ra re ri sa so ta te to va ve vi za".split()
_CYRILLIC = [
    chr(0x431 + one) + vowel for one in range(0, 24, 2) for vowel in (chr(0x430), chr(0x438))
]
_WIDTHS = {1366: 0.3, 1280: 0.2, 1920: 0.2, 1024: 0.08, 1600: 0.1, 1440: 0.06, 1638: 0.06}
_HOME = 0.05
"""The share of the rows of a counter that are its first page."""

_Numbers = npt.NDArray[np.int64]
_Shares = npt.NDArray[np.floating]


def file(rows: int = ROWS, folder: Path = _FOLDER) -> Path:
    """Return the Parquet file, made if it is missing."""
    path = folder / f"hits-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        pq.write_table(_Drawing(rows).table(), draft, row_group_size=max(1, rows // 4))
        draft.rename(path)
    return path


def manifest(path: Path) -> Path:
    """Write a manifest that serves the file as `hits`."""
    lines = ["version: v1", "kind: Caraway", "name: clickbench", "datasets:",
             f"  - from: file:{path}", "    name: hits"]  # fmt: skip
    found = path.with_suffix(".yaml")
    found.write_text("\n".join(lines) + "\n")
    return found


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of all counters: pages of one counter have neighbouring numbers."""

    first: _Numbers
    count: _Numbers
    urls: pa.Array
    titles: pa.Array
    hashes: _Numbers


class _Drawing:
    """Draws the columns of a table. One seed gives the same rows each time."""

    def __init__(self, rows: int) -> None:
        self._draw = np.random.default_rng(62)
        self._rows = rows
        self._latin = self._words(_LATIN, 6_000)
        self._cyrillic = self._words(_CYRILLIC, 20_000)

    def table(self) -> pa.Table:
        """Return all rows."""
        columns = hits_columns.plain(self._draw, self._rows)
        columns |= self._visits()
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _visits(self) -> dict[str, pa.Array]:
        """Draw what belongs to visits: users, counters and days, in their order in the table."""
        rows, draw = self._rows, self._draw
        per_visit, users = 4, max(1, rows * 35 // 100)
        visits = rows // per_visit + 1
        counters, weights = self._counters()
        counter = draw.choice(len(counters), visits, p=weights)
        user = (users * draw.random(visits) ** 1.3).astype(np.int64)
        day = draw.integers(0, _DAYS, visits)
        visit = np.sort(draw.integers(0, visits, rows))
        ids = draw.integers(1, 2**62, users)
        ids[user[visit[0]]] = USER
        order = np.lexsort(
            (draw.random(rows), ids[user[visit]], day[visit], counters[counter[visit]])
        )
        visit = visit[order]
        counter, user, day = counter[visit], user[visit], day[visit]
        seconds = (_FIRST_DAY + day) * 86_400 + draw.integers(0, 86_400, rows)
        times = pa.array(seconds * 1000, pa.timestamp("ms"))
        return {
            "WatchID": pa.array(draw.permutation(rows) * 8_796_093_022_207 + 4_611_686_018_427_387),
            "EventTime": times,
            "ClientEventTime": times,
            "LocalEventTime": times,
            "EventDate": pa.array((_FIRST_DAY + day).astype(np.int32)).cast(pa.date32()),
            "CounterID": pa.array(counters[counter].astype(np.int32)),
            "UserID": pa.array(ids[user]),
            **self._of_users(users, user),
            **self._of_pages(counters, weights, counter),
            **self._searches(),
        }

    def _counters(self) -> tuple[_Numbers, _Shares]:
        """Return the counters and their shares; one has 9 % of the rows, and 62 has 0.7 %."""
        count = 1_500
        weights = 1.0 / (np.arange(count) + 4.0) ** 1.25
        weights /= weights.sum()
        numbers = np.sort(self._draw.choice(200_000, count, replace=False) + 63)
        self._draw.shuffle(numbers)
        numbers[int(np.argmin(np.abs(weights - 0.0074)))] = COUNTER
        return numbers, weights

    def _of_users(self, users: int, user: _Numbers) -> dict[str, pa.Array]:
        """Draw what a user has in each of its rows."""
        draw = self._draw
        width = draw.choice(list(_WIDTHS), users, p=list(_WIDTHS.values())).astype(np.int16)
        model = np.where(draw.random(users) < 0.056, _skewed(draw, 166, users, 3) + 1, 0)
        models = pa.array(["", "iPad", "iPhone", *(f"{w[:6]}-{n}" for n, w in
                           enumerate(self._latin.to_pylist()[:165]))])  # fmt: skip
        minors = pa.array([f"D{number}" for number in range(200)])
        address = draw.integers(-(2**31), 2**31 - 1, max(1, users * 6 // 10), np.int32)
        of_user = {
            "ClientIP": address[draw.integers(0, len(address), users)],
            "RemoteIP": address[draw.integers(0, len(address), users)],
            "RegionID": np.where(
                draw.random(users) < 0.18, 229, _skewed(draw, 5_000, users, 3)
            ).astype(np.int32),
            "OS": _skewed(draw, 90, users, 3).astype(np.int16),
            "UserAgent": _skewed(draw, 80, users, 3).astype(np.int16),
            "UserAgentMajor": _skewed(draw, 60, users, 2).astype(np.int16),
            "ResolutionWidth": width,
            "ResolutionHeight": (width * 9 // 16).astype(np.int16),
            "WindowClientWidth": (width - _skewed(draw, 300, users, 2)).astype(np.int16),
            "WindowClientHeight": (300 + _skewed(draw, 800, users, 1)).astype(np.int16),
            "IPNetworkID": _skewed(draw, 4_000_000, users, 2).astype(np.int32),
            "FUniqID": draw.integers(0, 2**62, users) * (draw.random(users) < 0.6),
            "IsMobile": (model > 0).astype(np.int16),
            "MobilePhone": (model % 90).astype(np.int16),
        }
        found = {name: pa.array(values[user]) for name, values in of_user.items()}
        found["MobilePhoneModel"] = models.take(pa.array(np.minimum(model, 167)[user]))
        found["UserAgentMinor"] = minors.take(pa.array(_skewed(draw, 200, users, 2)[user]))
        return found

    def _of_pages(
        self,
        counters: _Numbers,
        weights: _Shares,
        counter: _Numbers,
    ) -> dict[str, pa.Array]:
        """Draw pages, and the pages that visitors came from."""
        pages, draw, rows = self._pages(counters, weights), self._draw, self._rows
        page, before = self._visited(pages, counter), self._visited(pages, counter)
        hub = draw.random(rows) < 0.033
        page[hub] = pages.first[0]
        origin, empty = draw.random(rows), pa.scalar("")
        found_by = pc.binary_join_element_wise(
            pa.scalar("http://search.example/yandsearch?text="),
            self._joined(self._cyrillic, 2, _skewed(draw, max(1, rows // 6), rows, 1.5), "+"),
            pa.scalar("&lr=213&msid=22868"), "",
        )  # fmt: skip
        referers = pc.if_else(pa.array(origin < 0.26), found_by, pages.urls.take(pa.array(before)))
        return {
            "URL": pages.urls.take(pa.array(page)),
            "Title": pc.if_else(pa.array(draw.random(rows) < 0.15), empty,
                                pages.titles.take(pa.array(page // 2))),
            "Referer": pc.if_else(pa.array(origin > 0.81), empty, referers),
            "OriginalURL": pc.if_else(pa.array(draw.random(rows) < 0.06),
                                      pages.urls.take(pa.array(before)), empty),
            "URLHash": pa.array(pages.hashes[page]),
            "RefererHash": pa.array(np.where(
                (counters[counter] == COUNTER) & (origin < 0.4), REFERER_HASH,
                pages.hashes[before] ^ (origin < 0.26))),
        }  # fmt: skip

    def _pages(self, counters: _Numbers, weights: _Shares) -> _Pages:
        draw = self._draw
        size = np.maximum(1, weights * self._rows * 0.2).astype(np.int64)
        first = np.cumsum(size) - size
        total, number = int(size.sum()), np.arange(int(size.sum()))
        of_counter = np.repeat(np.arange(len(counters)), size)
        hosts = self._joined(self._latin, 2, np.arange(len(counters)), "-")
        tail = pc.if_else(
            pa.array(draw.random(total) < 0.0003),
            pa.scalar("google"), self._latin.take(pa.array(draw.integers(0, 6_000, total))),
        )  # fmt: skip
        urls = pc.binary_join_element_wise(
            pa.scalar("http:/"), pc.binary_join_element_wise(
                hosts.take(pa.array(of_counter)), pa.scalar("example"), "."),
            self._joined(self._latin, 4, number, "/"), tail,
            pc.binary_join_element_wise(pa.scalar("page"), pa.array(number).cast(pa.string()), "="),
            "/")  # fmt: skip
        titles = self._joined(self._cyrillic, 5, np.arange(total // 2 + 1), " ")
        titles = pc.binary_join_element_wise(
            titles, pc.if_else(pa.array(draw.random(len(titles)) < 0.0008),
                               pa.scalar("Google"), pa.scalar("Яндекс")), " — ")  # fmt: skip
        hashes = draw.integers(-(2**63), 2**63 - 1, total)
        hashes[first[int(np.argmax(counters == COUNTER))]] = URL_HASH
        return _Pages(first, size, urls, titles, hashes)

    def _visited(self, pages: _Pages, counter: _Numbers) -> _Numbers:
        """Draw pages of counters, of which the first ones are visited most."""
        share = self._draw.random(len(counter)) ** 1.6
        share[self._draw.random(len(counter)) < _HOME] = 0
        return pages.first[counter] + (pages.count[counter] * share).astype(np.int64)

    def _searches(self) -> dict[str, pa.Array]:
        """Draw search phrases, search engines and advertisements, which most rows have not."""
        rows, draw = self._rows, self._draw
        searched, advertised = draw.random(rows) < 0.132, draw.random(rows) < 0.0063
        phrases = self._joined(self._cyrillic, 3, np.arange(max(1, rows * 9 // 100)), " ")
        place = _skewed(draw, len(phrases), rows, 2)
        engines = np.where(searched, 2 + _skewed(draw, 90, rows, 5), 0)
        adverts = np.where(advertised, 2 + _skewed(draw, 18, rows, 3), 0)
        return {
            "SearchPhrase": pc.if_else(pa.array(searched), phrases.take(pa.array(place)), ""),
            "SearchEngineID": pa.array(engines.astype(np.int16)),
            "AdvEngineID": pa.array(adverts.astype(np.int16)),
        }

    def _words(self, syllables: list[str], count: int) -> pa.Array:
        """Make words of two to five syllables."""
        draw = self._draw
        picks = draw.integers(0, len(syllables), (count, 5))
        lengths = draw.integers(2, 6, count)
        return pa.array(
            "".join(syllables[pick] for pick in row[:length])
            for row, length in zip(picks.tolist(), lengths.tolist(), strict=True)
        )

    def _joined(self, words: pa.Array, count: int, key: _Numbers, between: str) -> pa.Array:
        """Make one text of words for each key; equal keys have equal texts."""
        spread = (key.astype(np.uint64) + 1) * np.uint64(0x9E37_79B9_7F4A_7C15)
        parts = [
            words.take(pa.array((spread >> np.uint64(10 * place)) % np.uint64(len(words))))
            for place in range(1, count + 1)
        ]
        return pc.binary_join_element_wise(*parts, between)


def _skewed(draw: np.random.Generator, most: int, count: int, power: float) -> _Numbers:
    """Draw numbers below a limit, small ones more often."""
    return (most * draw.random(count) ** power).astype(np.int64)
