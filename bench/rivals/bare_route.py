"""The least that a route over SQLite costs: FastAPI, one select by a key, no credential.

`python -m bench.rivals.bare_route DATABASE PORT`.
"""

import sqlite3
import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

app = FastAPI()
_connection = sqlite3.connect(sys.argv[1], check_same_thread=False, isolation_level=None)


@app.get("/projects/{project_id}")
async def get_project(project_id: int) -> dict[str, Any]:
    """Return a project."""
    row = _connection.execute("SELECT id, name FROM projects WHERE id = ?", [project_id]).fetchone()
    return {"id": row[0], "name": row[1]}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", loop="uvloop")
