"""A PostgreSQL that is stopped and started again, beneath a service that goes on."""

from tests.kit import deadlines, management, postgres


def test_requests_are_refused_until_the_database_is_back() -> None:
    with postgres.serving() as server:
        url = management.new_postgres_url(server)
        with management.installation(url) as installation:
            owner = installation.add_user()
            installation.add_org("acme", owner)
            caller = installation.sign_in(owner)
            assert caller.post("/v1/projects", {"name": "before"}).status_code == 201
            server.stop()
            for answer in (
                caller.get("/v1/projects"),
                caller.post("/v1/projects", {"name": "lost"}),
                caller.post("/v1/projects", {"name": "lost"}, headers={"idempotency-key": "k"}),
            ):
                assert answer.status_code == 503, answer.text
                assert int(answer.headers["retry-after"]) > 0
                assert "try again" in answer.json()["error"]
                assert "postgres" not in answer.text
            assert caller.get("/readyz").status_code == 503
            assert caller.get("/healthz").status_code == 200
            server.start()
            deadlines.until(
                lambda: caller.get("/v1/projects").status_code == 200, "the database is back"
            )
            made = caller.post("/v1/projects", {"name": "after"}, headers={"idempotency-key": "k"})
            assert made.status_code == 201, made.text
            names = [each["name"] for each in caller.get("/v1/projects").json()["projects"]]
            assert sorted(names) == ["after", "before"]
