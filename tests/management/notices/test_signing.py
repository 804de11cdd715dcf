import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest

from caraway_management.domain.refusals import RefusedError
from caraway_management.notices import signing

AT = datetime(2026, 11, 26, 12, tzinfo=UTC)


def test_the_example_of_standard_webhooks() -> None:
    # The test vector of the specification's reference libraries.
    headers = signing.headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromtimestamp(1614265330, UTC),
        b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_new_secrets_sign_and_differ() -> None:
    secret = signing.new_secret()
    assert secret != signing.new_secret()
    signing.check_secret(secret)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    body = b"{}"
    expected = hmac.new(
        key, b"msg_1." + str(int(AT.timestamp())).encode() + b"." + body, hashlib.sha256
    )
    assert signing.headers(secret, "msg_1", AT, body)["webhook-signature"] == (
        "v1," + base64.b64encode(expected.digest()).decode()
    )


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "secret", "whsec_!!!", "whsec_YWJj", "whsec_" + "A" * 128]
)
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(RefusedError):
        signing.check_secret(secret)
