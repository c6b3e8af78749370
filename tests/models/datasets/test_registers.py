import pytest

from models.datasets.registers import FAMILIES, family, messy


@pytest.mark.parametrize(
    ("register", "name"),
    [
        ("family WhatsApp group", "family"),
        ("livestream of a game, very messy", "live"),
        ("毕业班班群，乱", "school"),
        ("chat de directo", "live"),
        ("GitHub issue thread", "work"),
        ("业主群", "neighbours"),
        ("grupo de WhatsApp", "groups"),
        ("smoke signals", "other"),
        (None, "other"),
    ],
)
def test_a_register_has_one_family(register: str | None, name: str) -> None:
    assert family(register) == name
    assert name in FAMILIES


def test_careless_writing_is_told_from_the_register() -> None:
    assert [messy(register) for register in ("QQ群，很乱", "chat, very messy", "foro, cuidado", None)] == [
        True,
        True,
        False,
        False,
    ]
