"""A compressed upload that becomes a gigabyte is refused, and harms only itself."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from tests.hostile import serving
from tests.hostile.serving import Answer, Served
from tests.hostile.watching import watched

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
ROWS = 1 << 27
"""They have 1 GiB, and become a message of 34 KB."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("uploads")) as made:
        yield made


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_an_upload_that_becomes_a_gigabyte_harms_only_itself(served: Served, codec: str) -> None:
    running = served.up()
    url = f"http://{running.addresses['http']}"
    batch = pa.record_batch([pa.array(np.zeros(ROWS, np.int64))], names=["v"])
    options = flight.FlightCallOptions(
        timeout=serving.WITHIN_S, write_options=pa.ipc.IpcWriteOptions(compression=codec)
    )
    answers: list[Answer] = []

    def send() -> None:
        with flight.connect(f"grpc+tcp://{running.addresses['flight']}") as client:
            to = flight.FlightDescriptor.for_path("uploaded")
            writer, told = client.do_put(to, batch.schema, options)
            with pytest.raises(pa.ArrowInvalid, match=r"holds more than \d+ bytes of rows"):
                try:
                    writer.write_batch(batch)
                    writer.done_writing()
                    told.read()
                finally:
                    writer.close()
            answers.append(Answer(400, "it was refused with a sentence"))

    seen = watched([running.process.pid], url, send)
    assert answers[0].problems() + seen.problems() == []
    assert running.process.poll() is None
