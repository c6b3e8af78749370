from pathlib import Path

import pytest

from models.datasets import registry
from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.registry import SOURCES, NotLicensed, UnknownSource, check_training
from tests.models.datasets.putting import Put

FREE = {"benchmark", "persuasionforgood", "diaasq", "climatememes", "multiclimate"}


def test_what_is_shipped_learns_only_where_the_licence_allows() -> None:
    assert {name for name, source in SOURCES.items() if source.may_train} == FREE
    check_training(FREE)


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - FREE))
def test_others_only_by_a_researchers_own_word(name: str) -> None:
    with pytest.raises(NotLicensed, match=name):
        check_training(["benchmark", name])
    check_training(["benchmark", name], research=True)


def test_a_licence_that_is_not_stated_or_not_free_may_not_train() -> None:
    for source in SOURCES.values():
        if any(word in source.licence for word in ("none", "GPL", "NC")):
            assert not source.may_train


def test_a_name_that_is_no_source_is_an_error_for_a_researcher_too() -> None:
    with pytest.raises(UnknownSource, match="no source 'reddit'"):
        check_training(["reddit"], research=True)
    with pytest.raises(UnknownSource):
        registry.load("reddit", Path())


def test_labels_are_fields_of_the_form() -> None:
    fields = {*LabelledTurn.__struct_fields__, *Dialogue.__struct_fields__}
    assert all(set(source.labels) <= fields for source in SOURCES.values())


def test_a_source_is_loaded_by_name(put: Put) -> None:
    put("text/Trams.csv", "id,text\n7,Trams\n")
    root = put("index/Trams/test.json", [{"index": ["7"], "stance": "none"}])
    assert [dialogue.source for dialogue in registry.load("mt-csd", root, "test")] == ["mt-csd"]
