"""Calls that provoke engine messages which need files, memory limits or a store."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, object_store, substrait

_NUMBERS = pa.schema([("a", pa.int64())])
_MANY = "generate_series(1, 1000000)"
_SORT = f"SELECT * FROM {_MANY} t(v) ORDER BY v DESC"
_JOIN = f"SELECT count(*) FROM {_MANY} a(v) JOIN {_MANY} b(v) ON a.v = b.v"
_MIB = 1024 * 1024


def _text(call: Callable[[], Any]) -> str:
    try:
        call()
    except BaseException as exc:
        return str(exc)
    raise AssertionError("the engine did not fail")


def _fails(sql: str, context: SessionContext | None = None) -> str:
    return _text(lambda: (context or SessionContext()).sql(sql).collect())


def _frugal(builder: RuntimeEnvBuilder, memory_bytes: int) -> SessionContext:
    config = SessionConfig().with_target_partitions(2)
    return SessionContext(config, builder.with_greedy_memory_pool(memory_bytes))


def nested(_folder: Path) -> str:
    return _fails("SELECT " + "(" * 3000 + "1" + ")" * 3000)


def no_value(_folder: Path) -> str:
    return _fails("SELECT $1 + x FROM (VALUES (1)) v(x)")


def product_too_large(_folder: Path) -> str:
    wide = "arrow_cast(x, 'Decimal128(38, 0)')"
    return _fails(f"SELECT {wide} * {wide} FROM (VALUES ('{'9' * 29}')) v(x)")


def sort_without_memory(_folder: Path) -> str:
    return _fails(_SORT, _frugal(RuntimeEnvBuilder().with_disk_manager_disabled(), 2 * _MIB))


def join_without_memory(_folder: Path) -> str:
    return _fails(_JOIN, _frugal(RuntimeEnvBuilder().with_disk_manager_os(), 2 * _MIB))


def spill_too_much(_folder: Path) -> str:
    context = _frugal(RuntimeEnvBuilder().with_disk_manager_os(), 16 * _MIB)
    context.sql("SET datafusion.runtime.max_temp_directory_size = '100K'").collect()
    return _fails("SELECT * FROM generate_series(1, 3000000) t(v) ORDER BY v DESC", context)


def spill_nowhere(folder: Path) -> str:
    """Spill to a folder that became a file."""
    (folder / "spill").mkdir()
    builder = RuntimeEnvBuilder().with_disk_manager_specified(str(folder / "spill"))
    context = _frugal(builder, 16 * _MIB)
    context.sql("SELECT 1").collect()
    for each in (folder / "spill").iterdir():
        each.rmdir()
    (folder / "spill").rmdir()
    (folder / "spill").touch()
    return _fails("SELECT * FROM generate_series(1, 3000000) t(v) ORDER BY v DESC", context)


def removed_parquet(folder: Path) -> str:
    """Read a file that was removed after the statement had been planned."""
    path = folder / "gone.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    return _removed(path, SessionContext.register_parquet)


def removed_csv(folder: Path) -> str:
    path = folder / "gone.csv"
    path.write_text("a\n1\n")
    return _removed(path, SessionContext.register_csv)


def _removed(path: Path, register: Callable[..., Any]) -> str:
    context = SessionContext()
    register(context, "t", str(path))
    plan = context.sql("SELECT a FROM t").execution_plan()
    path.unlink()
    return _text(lambda: list(context.execute(plan, 0)))


def short_parquet(folder: Path) -> str:
    path = folder / "short.parquet"
    path.write_bytes(b"PAR1")
    return _text(lambda: SessionContext().register_parquet("t", str(path)))


def damaged_parquet(folder: Path) -> str:
    path = folder / "damaged.parquet"
    pq.write_table(pa.table({"a": range(10_000)}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[20:2000] = random.Random(1).randbytes(1980)
    path.write_bytes(content)
    context = SessionContext()
    context.register_parquet("t", str(path))
    return _fails("SELECT sum(a) FROM t", context)


def damaged_avro(folder: Path) -> str:
    path = folder / "damaged.avro"
    path.write_bytes(b"Obj\x01junk")
    return _text(lambda: SessionContext().register_avro("t", str(path)))


def damaged_csv(folder: Path) -> str:
    return _csv(folder, "a\n1\n2,3\n")


def text_in_a_number(folder: Path) -> str:
    return _csv(folder, "a\n1\nx\n")


def _csv(folder: Path, content: str) -> str:
    (folder / "t.csv").write_text(content)
    context = SessionContext()
    context.register_csv("t", str(folder / "t.csv"), schema=_NUMBERS)
    return _fails("SELECT * FROM t", context)


def damaged_json(folder: Path) -> str:
    (folder / "t.json").write_text('{"a":1}\n{"a":\n')
    context = SessionContext()
    context.register_json("t", str(folder / "t.json"), schema=_NUMBERS)
    return _fails("SELECT * FROM t", context)


def damaged_plan(_folder: Path) -> str:
    return _text(lambda: substrait.Serde.deserialize_bytes(b"junk"))


def store_away(_folder: Path) -> str:
    """Read from a store that does not respond."""
    store = object_store.AmazonS3(
        "b", region="us-east-1", access_key_id="a", secret_access_key="b",
        endpoint="http://127.0.0.1:9", allow_http=True,
    )  # fmt: skip
    context = SessionContext()
    context.register_object_store("s3://", store, "b")
    return _text(lambda: context.register_parquet("t", "s3://b/x.parquet"))


def constant_filter(_folder: Path) -> str:
    context = SessionContext()
    context.register_dataset("t", ds.dataset(pa.table({"i": [1]})))
    union = "SELECT i, 'a' AS s FROM t UNION ALL SELECT i, 'b' FROM t"
    return _fails(f"SELECT i FROM ({union}) WHERE s = 'a' AND i > 1", context)
