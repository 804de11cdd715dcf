"""Dataset errors for users contain no server folders and no texts of libraries."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.runtime import running

FORBIDDEN = re.compile(
    r"Errno|Traceback|os error|Exception|Error\b|DataFusion|Arrow|Rust|panicked|AKIASECRET"
    r"|topsecret|/tmp/|/root/|/home/|pytest-of"
)
FILES: dict[str, bytes] = {
    "junk.parquet": b"PAR1junkjunkPAR1", "short.parquet": b"x", "bad.csv": b'a,b\n1,2\n"x\n',
    "empty.csv": b"", "bad.json": b'{"a":', "bad.ndjson": b'{"a":1}\n[1]\n',
    "bad.arrow": b"ARROW1xx", "bad.avro": b"Obj\x01xx", "x.foo": b"a", "nul.csv": b"a\xff\n1\n",
}  # fmt: skip
OTHERS = ["absent.csv", "empty/", "*.nothing", "../../../../etc/shadow"]
REMOTE = """
  - {from: 'http://127.0.0.1:1/x.csv?token=topsecret', name: h}
  - from: s3://bucket/x.parquet
    name: s
    params: {s3_endpoint: 'http://127.0.0.1:1', s3_auth: key, s3_key: AKIASECRET,
             s3_secret: topsecret, s3_region: us-east-1, client_timeout: 1s}
"""


async def test_errors_of_datasets_name_files_as_the_manifest_does(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "empty").mkdir()
    names = [*FILES, *OTHERS]
    lines = "".join(f"  - {{from: 'file:{n}', name: d{i}}}\n" for i, n in enumerate(names))
    async with running(tmp_path, f"datasets:\n{lines}{REMOTE}") as runtime:
        entries = (await runtime.api.get("/v1/datasets?status=true")).json()
        assert len(entries) == len(names) + 2
        for entry in entries:
            assert entry["status"] == "error", entry
            assert not FORBIDDEN.search(entry["error_message"]), entry
        for place, name in enumerate(names):
            assert name in entries[place]["error_message"]


async def test_file_that_disappears_or_breaks_while_it_is_read(tmp_path: Path) -> None:
    rows = pa.table({"a": list(range(100_000))})
    for name in ("gone", "broken"):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    manifest = "".join(
        f"  - {{from: 'file:{name}.parquet', name: {name}}}\n" for name in ("gone", "broken")
    )
    async with running(tmp_path, f"datasets:\n{manifest}") as runtime:
        (tmp_path / "gone.parquet").unlink()
        whole = (tmp_path / "broken.parquet").read_bytes()
        (tmp_path / "broken.parquet").write_bytes(b"x" * 100_000 + whole[100_000:])
        for name in ("gone", "broken"):
            answer = await runtime.sql(f"SELECT sum(a), min(a + 1) FROM {name}")
            assert answer.status_code == 500, answer.text
            assert not FORBIDDEN.search(answer.text), answer.text
