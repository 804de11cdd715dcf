"""Datasets that are tables or views of Spark: `from: spark:SCHEMA.TABLE`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import params
from caraway_plugins.sources.adbc.source import AdbcSource
from caraway_plugins.sources.spark import declared

_REMOTE = re.compile(r"sc://[^\s/;]+(?:/(?:;[^\s]*)?)?")


class SparkSource(AdbcSource):
    """A table or view of a server of Spark Connect."""

    declaration = declared.SPARK
    package = "adbc-driver-spark"
    of_login = "params.spark_remote and spark_token"
    of_server = "params.spark_remote"

    def _reader(self, login: Mapping[str, str]) -> str:
        return "spark"

    def login(self, request: SourceRequest) -> dict[str, str]:
        given = params.checked(request.connector, request.params)
        remote = given.text("spark_remote")
        if remote is None or not _REMOTE.fullmatch(remote):
            raise DatasetError(
                "invalid",
                f"dataset '{request.name}': params.spark_remote must have the form "
                "sc://host:15002, or sc://host:443/;use_ssl=true",
            )
        login = {"driver": "spark", "dialect": "spark", "uri": remote}
        if (token := given.text("spark_token")) is not None:
            login["password"] = token
        return login
