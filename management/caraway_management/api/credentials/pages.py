"""The few pages that browsers need: forms without scripts, which other sites cannot frame."""

from html import escape
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse

_STYLE = (
    "body{font:16px system-ui;max-width:26rem;margin:4rem auto;padding:0 1rem}"
    "input,button,select{font:inherit;width:100%;box-sizing:border-box;margin:.2rem 0 1rem;"
    "padding:.5rem}li{font-family:monospace}"
)


def page(
    title: str, content: str, status: int = 200, redirects_to: str | None = None
) -> HTMLResponse:
    """Return a page. `content` is HTML, with texts of users escaped.

    Its forms go to this service only, which may redirect to the origin of `redirects_to`.
    """
    targets = "'self'"
    if redirects_to is not None:
        parts = urlsplit(redirects_to)
        targets += f" {parts.scheme}://{parts.netloc}"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; form-action {targets}; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)} - Caraway</title><style>{_STYLE}</style>"
        f"<h1>{escape(title)}</h1>{content}</html>"
    )
    headers = {
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        # With no-referrer, browsers send `Origin: null` with the forms of these pages.
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
    }
    return HTMLResponse(html, status, headers)


def address(request: Request, path: str) -> str:
    """Return the address of a path of this service, relative to that of a request.

    A proxy may serve this service below a prefix, which only the browser knows. The address begins
    with a dot, so it names no other host and no other scheme.
    """
    up = "../" * (request.url.path.count("/") - 1)
    return f"{up or './'}{path.removeprefix('/')}"


def hidden(**fields: str | None) -> str:
    """Return the hidden fields of a form."""
    return "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in fields.items()
        if value is not None
    )


def decision(action: str, fields: str) -> str:
    """Return a form with the buttons Approve and Deny."""
    return (
        f'<form method="post" action="{escape(action)}">{fields}'
        '<button name="decision" value="approve">Approve</button>'
        '<button name="decision" value="deny">Deny</button></form>'
    )
