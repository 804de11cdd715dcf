"""Tools and tables ranked by the embedding models of a runtime."""

from pathlib import Path

import pytest

from caraway_assist.embeddings.service import Embeddings
from caraway_assist.nsql.service import Asker, DataQuestion
from caraway_assist.tools.meanings import TextEmbedder
from caraway_core.errors import ModelError
from caraway_core.ids import NodeId
from caraway_core.manifest import build_resolver, load
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS
from tests.kit.documents import MODEL, use
from tests.kit.runtime import running
from tests.kit.scripted_provider import completion, scripted
from tests.kit.tools import FixedTools, echoing
from tests.kit.word_embedder import WordEmbedder


async def test_texts_are_embedded_once(tmp_path: Path) -> None:
    path = tmp_path / "caraway.yaml"
    path.write_text("name: test\n")
    manifest = load(path)
    embeddings = Embeddings(TaskHistory(HistorySettings(), NodeId("n"), lambda: 0))
    try:
        embeddings.apply(manifest, build_resolver(manifest, {}))
        meanings, model = TextEmbedder(embeddings), WordEmbedder()
        assert meanings.embed is None
        state = embeddings.states[MODEL]
        state.loaded = model
        state.is_ready()
        state.settled.set()
        embed = meanings.embed
        assert embed is not None
        first = await embed(["a b", "c", "a b"])
        assert first[0] == first[2] != first[1]
        assert (await embed(["c", "d"]))[0] == first[1]
        assert model.texts == ["a b", "c", "d"]
        model.error = ModelError("the model broke")
        with pytest.raises(ModelError):
            await embed(["e"])
    finally:
        await embeddings.aclose()


async def test_tools_are_found_by_meaning(tmp_path: Path) -> None:
    async with running(tmp_path, "") as runtime:
        toolbox = runtime.services.tools.toolbox
        pets = FixedTools("pets", (echoing("stroll", "walk the dog"), echoing("x", "feed cats")))
        toolbox.sources = [*toolbox.sources, pets]
        url = "/v1/tools/search?query=walk%20the%20dog&limit=1"

        async def sources() -> list[str]:
            (tool,) = (await runtime.api.get(url)).json()["tools"]
            assert tool["tool_id"] == "stroll"
            return [each["source"] for each in tool["match_sources"]]

        assert "vector" not in await sources()
        model = WordEmbedder()
        use(runtime, model)
        assert "vector" in await sources()
        model.error = ModelError("the model broke")
        embedded = len(model.texts)
        url += "&keywords=stroll"
        assert "vector" in await sources()
        assert len(model.texts) == embedded
        toolbox.sources = [*toolbox.sources, FixedTools("more", (echoing("y", "new"),))]
        assert "vector" not in await sources()


async def test_questions_rank_tables_only_if_they_are_many(tmp_path: Path) -> None:
    columns = ", ".join(
        f"{{name: c{n}, type: bigint, description: lorem ipsum dolor sit amet}}" for n in range(100)
    )
    many = "".join(
        f"      - {{from: memory:t{n}, name: t{n}, columns: [{columns}]}}\n" for n in range(9)
    )
    async with scripted() as provider:
        provider.answers = [completion("SELECT 1 AS one")]
        manifest = f"""
    datasets:
{many}
      - {{from: memory:z, name: z, description: dogs and cats, columns: [{{name: id, type: int}}]}}
    models:
      - {{from: 'openai:x', name: m, params: {{endpoint: '{provider.url}', openai_api_key: k}}}}
"""
        async with running(tmp_path, manifest) as runtime:
            model = WordEmbedder()
            use(runtime, model)
            asker = Asker(ANONYMOUS, spans.start(None))
            nsql = runtime.services.nsql
            few = DataQuestion("how many dogs?", datasets=("z", "t1"))
            assert await nsql.write(few, asker) == "SELECT 1 AS one"
            assert model.texts == []
            await nsql.write(DataQuestion("how many dogs?"), asker)
            assert "how many dogs?" in model.texts
            told = provider.requests[-1]["messages"][0]["content"]
            assert "CREATE TABLE z" in told
            assert told.count("CREATE TABLE") < 10
