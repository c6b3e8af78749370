import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from stream.webhooks.signing import BadSecret, headers, key_of, new_secret

NOW = 1_790_000_000


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver's clock: it takes no signature that is five minutes old."""
    monkeypatch.setattr("standardwebhooks.webhooks.datetime", Clock)


class Clock:
    """As much of `datetime` as the receiver's library reads."""

    @staticmethod
    def now(tz: object = None) -> object:
        import datetime as dt

        return dt.datetime.fromtimestamp(NOW, dt.UTC)

    @staticmethod
    def fromtimestamp(timestamp: float, tz: object = None) -> object:
        import datetime as dt

        return dt.datetime.fromtimestamp(timestamp, dt.UTC)


BODY = b'{"type":"volteface.stance.flipped","data":{"rationale":"\xe4\xbd\xa0"}}'


def test_a_receiver_believes_it() -> None:
    secret = new_secret()
    assert Webhook(secret).verify(BODY, dict(headers([secret], "e1", NOW, BODY)))


@given(st.binary(min_size=24, max_size=64), st.text("abcdef0123456789", min_size=1))
def test_any_secret_and_id(key: bytes, ident: str) -> None:
    secret = "whsec_" + base64.b64encode(key).decode()
    assert key_of(secret) == key
    assert Webhook(secret).verify(BODY, dict(headers([secret], ident, NOW, BODY)))


def test_while_secrets_change_both_are_believed() -> None:
    old, new = new_secret(), new_secret()
    given = dict(headers([old, new], "e1", NOW, BODY))
    assert Webhook(old).verify(BODY, given)
    assert Webhook(new).verify(BODY, given)


@pytest.mark.parametrize("changed", ["id", "timestamp", "body", "secret"])
def test_what_was_changed_is_not_believed(changed: str) -> None:
    secret = new_secret()
    given, body = dict(headers([secret], "e1", NOW, BODY)), BODY
    if changed == "body":
        body = BODY.replace(b"flipped", b"created")
    elif changed == "secret":
        secret = new_secret()
    else:
        given[f"webhook-{changed}"] = "2" if changed == "id" else str(NOW + 1)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, given)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_!!!", "whsec_" + "A" * 8, "c2VjcmV0" * 8, "whsec_" + "A" * 100]
)
def test_what_is_no_secret(secret: str) -> None:
    with pytest.raises(BadSecret) as refusal:
        key_of(secret)
    assert not secret or secret not in str(refusal.value) or secret == "whsec_"
