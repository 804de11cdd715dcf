"""Advice for users of the command line, by the error."""

import pytest

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.terminal import explanations
from caraway_core.errors import CarawayError

URL = "https://h:8090"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CarawayError("it failed"), "it failed"),
        (BrokenResponseError("cut"), "cut"),
        (ApiError(400, "no table"), "no table"),
        (ApiError(500, ""), "the server returned status 500 without a message"),
        (ApiError(404, "no table 't'", is_structured=True), "no table 't'"),
        (ApiError(404, "<p>"), f"<p> (404); {explanations.HINTS[404]}"),
        (ApiError(401, "no key"), f"no key (401); {explanations.HINTS[401]}"),
        (ApiError(403, "no", is_structured=True), f"no (403); {explanations.HINTS[403]}"),
        (ApiError(503, "busy"), f"busy (503); {explanations.HINTS[503]}"),
        (UnreachableError(URL, "refused"),
         f"cannot connect to {URL}: is the runtime running? (start it with: caraway run MANIFEST; "
         "refused)"),
        (UnreachableError(URL, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
         f"cannot verify the certificate of {URL}: pass the certificate of its CA with --cacert "
         "FILE ([SSL: CERTIFICATE_VERIFY_FAILED] self-signed)"),
    ],
)  # fmt: skip
def test_explanations(error: CarawayError, text: str) -> None:
    assert explanations.explain(error) == text
