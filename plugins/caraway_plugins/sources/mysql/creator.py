"""Creates and drops tables of MySQL and MariaDB, whose statements of this kind end transactions."""

from contextlib import suppress

import pyarrow as pa
import pymysql

from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.database_tables import NewTable, TableCreation, TableDrop, TypeNames
from caraway_plugins.sources.mysql import connecting, unfinished
from caraway_plugins.sources.mysql.writer import MysqlInsert, MysqlWrite, quoted

TYPES = TypeNames(
    {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.uint8(): "TINYINT UNSIGNED",
        pa.uint16(): "SMALLINT UNSIGNED",
        pa.uint32(): "INT UNSIGNED",
        pa.uint64(): "BIGINT UNSIGNED",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.string(): "LONGTEXT",
        pa.binary(): "LONGBLOB",
        pa.date32(): "DATE",
        pa.timestamp("us"): "DATETIME(6)",
        pa.timestamp("us", "UTC"): "TIMESTAMP(6)",
    },
    most_digits=65,
)
_IN_KEYS = {"LONGTEXT": "VARCHAR(768)", "LONGBLOB": "VARBINARY(3072)"}
OPTIONS = " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


class MysqlCreation(TableCreation, MysqlInsert):
    """A table that is filled under another name, and renamed at the end.

    A CREATE TABLE ends a transaction, and cannot be rolled back.
    """

    def __init__(self, definition: TableDefinition, columns: pa.Schema) -> None:
        super().__init__(definition.table, columns)
        self._new = NewTable(definition, columns, TYPES, quoted)
        schema, self._name = definition.table.relation
        self._unfinished = unfinished.new_name()
        self._schema = schema
        self._is_left = False

    @property
    def _relation(self) -> str:
        """The table that is filled."""
        return f"{quoted(self._schema)}.{quoted(self._unfinished)}"

    def _prepare(self) -> None:
        if connecting.run(self._connection, _EXISTS, self._schema, self._name):
            raise self._refused("a table or view with this name is there")
        self._is_left = True
        self._run(self._new.sql(self._relation, _IN_KEYS) + OPTIONS)
        self._run("BEGIN")

    def _commit(self) -> None:
        super()._commit()
        self._run(f"RENAME TABLE {self._relation} TO {quoted(self._schema)}.{quoted(self._name)}")
        self._is_left = False

    def _drop(self) -> None:
        super()._drop()
        self._remove()

    def _keeps_rows(self) -> bool:
        self._remove()
        return self._is_left

    @property
    def _kept(self) -> str:
        return f"table '{self._unfinished}' is left, which could not be dropped; drop it"

    def _remove(self) -> None:
        """Drop the table that is not finished, over another connection: this one may be broken."""
        if not self._is_left:
            return
        if self._connection is not None:
            connecting.drop(self._connection)  # Its transaction holds a lock of the table.
        with suppress(pymysql.MySQLError, OSError):
            connection = connecting.connect(self._table.login)
            try:
                connecting.run(connection, "SET SESSION TRANSACTION READ WRITE")
                connecting.run(connection, f"DROP TABLE IF EXISTS {self._relation}")
                self._is_left = False
            finally:
                connecting.drop(connection)


class MysqlDrop(TableDrop, MysqlWrite):
    """A DROP TABLE, which is a transaction of its own."""
