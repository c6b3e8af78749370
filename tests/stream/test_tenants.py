import base64
from pathlib import Path

import pytest

from stream.settings import SettingsError, load
from stream.tenants import NoKey, Tenant, Tenants, read

KEY = bytes(range(32))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "acme.key").write_bytes(base64.b64encode(KEY) + b"\n")
    path = tmp_path / "tenants.toml"
    path.write_text(
        '[acme]\nprivacy = true\nkey_file = "acme.key"\n[open]\n[quoted]\nprivacy = true\nquotes = true\n'
    )
    return path


def test_privacy_leaves_no_names_and_unless_asked_no_words(file: Path) -> None:
    tenants = read(file)
    assert (tenants.private, tenants.wordless) == ({"acme", "quoted"}, {"acme"})
    assert Tenants({"a": Tenant(quotes=False)}).wordless == {"a"}
    assert (Tenants().private, Tenants().wordless) == (frozenset(), frozenset())


def test_a_key_lies_beside_the_file(file: Path) -> None:
    assert read(file).key("acme") == KEY


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "it holds no key"),
        (base64.b64encode(KEY[:31]), "at least 32"),
        (b"!" * 44, "no key"),
    ],
)
def test_what_is_no_key(file: Path, content: bytes | None, words: str) -> None:
    key_file = file.with_name("acme.key")
    key_file.unlink() if content is None else key_file.write_bytes(content)
    with pytest.raises(NoKey, match=words) as refusal:
        read(file).key("acme")
    assert "openssl rand -base64 32" in str(refusal.value)


@pytest.mark.parametrize("tenant", ["open", "nobody"])
def test_no_key_is_said(file: Path, tenant: str) -> None:
    with pytest.raises(NoKey, match="set its key_file"):
        read(file).key(tenant)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("acme = 1", r"\[acme\]"),
        ("[acme]\nprivate = true", "private"),
        ("[acme]\nprivacy = 1", r"\[acme\].*privacy"),
        ("[", "tenants file"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "tenants.toml").write_text(text)
    with pytest.raises(SettingsError, match=named) as refusal:
        load({"VOLTEFACE_TENANTS": str(tmp_path / "tenants.toml")})
    assert refusal.value.setting == "VOLTEFACE_TENANTS"


def test_settings_bring_them(file: Path) -> None:
    assert load({"VOLTEFACE_TENANTS": str(file)}).tenants == read(file)
    assert load({}).tenants == Tenants()
