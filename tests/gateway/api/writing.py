"""A runtime whose dataset takes statements that write, with rows of odd values."""

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running

KEYS = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "reader:ro"]}}
"""
COLUMNS = "[{name: id, type: bigint}, {name: v, type: text}, {name: n, type: double}]"
LOGGED = f"""
        datasets:
          - from: cdc:items
            name: items
            access: read_write
            columns: {COLUMNS}
            acceleration: {{enabled: true, refresh_mode: changes, primary_key: id}}
          - from: cdc:notes
            name: notes
            access: read_write
            columns: {COLUMNS}
            acceleration: {{enabled: true, refresh_mode: changes}}
          - from: memory:plain
            name: plain
            access: read_write
            columns: {COLUMNS}
          - from: memory:kept
            name: kept
            access: read_write
            columns: {COLUMNS}
            acceleration: {{enabled: true}}
"""
ROWS = "(1, 'a', 1.5), (2, 'b', NULL), (3, NULL, 3), (4, 'it''s', 4), (5, 'Dml: op=[Delete]', 5)"


async def ready(runtime: Running) -> None:
    async def look() -> bool:
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()
        return all(each["status"] == "ready" for each in listed)

    await eventually(look, "all datasets are ready")


async def filled(runtime: Running) -> None:
    runtime.api.headers.update({"x-api-key": "writer"})
    await ready(runtime)
    for table in ("items", "notes", "plain", "kept"):
        made = await runtime.sql(f"INSERT INTO {table} VALUES {ROWS}")
        assert made.status_code == 200, made.text
        assert made.json() == [{"count": 5}], table
