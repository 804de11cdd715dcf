"""A host of models that records what it is asked."""

import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.kit.scripted_provider import completion


class Recorder:
    """A server that answers each path by a table, and remembers what came."""

    def __init__(self, answers: dict[str, Response] | None = None) -> None:
        self.seen: list[Request] = []
        self.bodies: list[Any] = []
        self._answers = answers or {}
        route = Route("/{rest:path}", self._answer, methods=["GET", "POST"])
        self.app = Starlette(routes=[route])

    async def _answer(self, request: Request) -> Response:
        self.seen.append(request)
        body = await request.body()
        is_json = request.headers.get("content-type") == "application/json"
        self.bodies.append(json.loads(body) if body and is_json else body.decode())
        if (answer := self._answers.get(request.url.path)) is not None:
            return answer
        return JSONResponse(completion() if request.method == "POST" else {"data": []})
