"""Keys: their form, that no two are the same, and that only the whole key matches."""

from stream.accounts import secrets


def test_a_key_is_found_by_its_id_and_known_by_its_digest() -> None:
    made = secrets.made()
    assert secrets.id_of(made.text) == made.id
    assert secrets.matches(made.text, made.digest)
    assert made.text not in made.digest and len(made.digest) == 64


def test_no_two_keys_are_the_same() -> None:
    assert len({secrets.made().text for _ in range(100)}) == 100


def test_another_secret_with_the_same_id_does_not_match() -> None:
    one, other = secrets.made(), secrets.made()
    forged = f"vf_{one.id}_{other.text.rpartition('_')[2]}"
    assert not secrets.matches(forged, one.digest)
    assert not secrets.matches(one.text + "x", one.digest)
    assert not secrets.matches("\ud800", one.digest)


def test_what_has_not_the_form_has_no_id() -> None:
    made = secrets.made().text
    for text in ("", "vf_", made[:-1], made + "A", made.upper(), f" {made}", "vf_é", "\x00"):
        assert secrets.id_of(text) is None
