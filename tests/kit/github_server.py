"""A repository behind GitHub's wire: a part of its GraphQL schema, and its REST calls for files."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.kit.graphql_server import answering, connection

TOKEN = "ghp_hidden"
SCHEMA = """
scalar DateTime
scalar GitTimestamp
scalar GitObjectID
scalar URI
enum IssueState { OPEN CLOSED }
enum PullRequestState { OPEN CLOSED MERGED }
input IssueFilters { since: DateTime states: [IssueState!] }
type PageInfo { hasNextPage: Boolean! endCursor: String }
interface Actor { login: String! }
type User implements Actor {
  login: String! name: String email: String! company: String twitterUsername: String
  location: String avatarUrl: URI! bio: String
}
type UserConnection { nodes: [User] totalCount: Int! pageInfo: PageInfo! }
type Label { name: String! }
type LabelConnection { nodes: [Label] totalCount: Int! }
type Milestone { id: ID! title: String! }
type IssueComment { author: Actor body: String! }
type IssueCommentConnection { nodes: [IssueComment] totalCount: Int! }
type Issue {
  id: ID! number: Int! title: String! body: String! state: IssueState! url: URI!
  author: Actor milestone: Milestone createdAt: DateTime! updatedAt: DateTime! closedAt: DateTime
  assignees(first: Int): UserConnection! labels(first: Int): LabelConnection
  comments(first: Int): IssueCommentConnection!
}
type IssueConnection { nodes: [Issue] pageInfo: PageInfo! totalCount: Int! }
type PullRequestCommit { commit: Commit! }
type PullRequestCommitConnection { nodes: [PullRequestCommit] totalCount: Int! }
type PullRequestReviewConnection { totalCount: Int! }
type PullRequest {
  id: ID! number: Int! title: String! body: String! state: PullRequestState! url: URI!
  author: Actor createdAt: DateTime! updatedAt: DateTime! closedAt: DateTime mergedAt: DateTime
  additions: Int! deletions: Int! changedFiles: Int!
  assignees(first: Int): UserConnection! labels(first: Int): LabelConnection
  comments(first: Int): IssueCommentConnection!
  commits(first: Int): PullRequestCommitConnection! reviews(first: Int): PullRequestReviewConnection
}
type PullRequestConnection { nodes: [PullRequest] pageInfo: PageInfo! totalCount: Int! }
type GitActor { name: String email: String }
interface GitObject { oid: GitObjectID! }
type Commit implements GitObject {
  id: ID! oid: GitObjectID! message: String! messageBody: String! messageHeadline: String!
  committedDate: DateTime! additions: Int! deletions: Int! author: GitActor
  history(first: Int, after: String, since: GitTimestamp, until: GitTimestamp):
    CommitHistoryConnection!
}
type CommitHistoryConnection { nodes: [Commit] pageInfo: PageInfo! totalCount: Int! }
type Ref { target: GitObject }
type StargazerEdge { node: User! starredAt: DateTime! cursor: String! }
type StargazerConnection { edges: [StargazerEdge] pageInfo: PageInfo! totalCount: Int! }
type Repository {
  issues(first: Int, after: String, states: [IssueState!], filterBy: IssueFilters): IssueConnection!
  pullRequests(first: Int, after: String, states: [PullRequestState!]): PullRequestConnection!
  stargazers(first: Int, after: String): StargazerConnection!
  defaultBranchRef: Ref
}
type Query { repository(owner: String!, name: String!): Repository }
"""


def load(server: ApiServer, repository: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Serve the repository `owner/repo`, whose fields are those of GraphQL; a page has two rows."""
    graphql = answering(SCHEMA, {"repository": lambda owner, name: _known(owner, name, repository)})

    def answer(request: ApiRequest) -> ApiAnswer:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return ApiAnswer({"message": "Bad credentials"}, 401)
        found = graphql(request)
        if found.value.get("data") == {"repository": None}:
            error = {"type": "NOT_FOUND", "path": ["repository"], "message": "Could not resolve"}
            return ApiAnswer({**found.value, "errors": [error]})
        return found

    server.answers["/graphql"] = answer
    base = "/repos/owner/repo/git"
    tree = [
        {"path": "docs", "mode": "040000", "type": "tree", "sha": "d" * 40, "url": "u"},
        *(_blob(server, base, path, text) for path, text in files.items()),
    ]
    server.say(f"{base}/trees/main", {"sha": "a" * 40, "tree": tree, "truncated": False})


def _known(owner: str, name: str, repository: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return repository if (owner, name) == ("owner", "repo") else None


def _blob(server: ApiServer, base: str, path: str, text: bytes) -> Mapping[str, Any]:
    sha = path.encode().hex().ljust(40, "0")
    content = base64.encodebytes(text).decode()
    answer = {"sha": sha, "size": len(text), "encoding": "base64", "content": content}
    server.say(f"{base}/blobs/{sha}", answer)
    url = f"https://api.github.com{base}/blobs/{sha}"
    return {"path": path, "mode": "100644", "type": "blob", "sha": sha, "size": len(text),
            "url": url}  # fmt: skip


def paged(rows: Sequence[Mapping[str, Any]], asked: list[Mapping[str, Any]]) -> Any:
    """Return a connection of at most two rows a page, which notes its arguments."""

    def page(first: int, after: str | None = None, **arguments: Any) -> Mapping[str, Any]:
        asked.append({"first": first, **arguments})
        found = connection(rows)(min(first, 2), after)
        return {**found, "edges": found["nodes"]}

    return page
