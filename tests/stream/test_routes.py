from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from models.encoder import shipped
from models.language.registry import ReaderSettings
from stream import roles
from stream.options import SettingsError, Source
from stream.routes import chosen
from stream.settings import Row, load, survey

FILE = """
reader = "generative"
model = "base"
adapter = "base/adapter"
threads = 2
[[readers]]
languages = ["en", "en-GB"]
adapter = "english"
[[readers]]
languages = ["zh", "yue"]
reader = "encoder"
threads = 1
[[readers]]
languages = ["es"]
model = "spanish"
dtype = "float32"
"""
OTHERS = '[[readers]]\nlanguages = ["*"]\nreader = "rule"\n'


def written(folder: Path, toml: str) -> dict[str, str]:
    (folder / "volteface.toml").write_text(toml)
    return {"VOLTEFACE_CONFIG": str(folder / "volteface.toml")}


def row(environment: dict[str, str]) -> Row:
    return next(row for row in survey(environment) if row.key == "readers")


def test_what_a_table_leaves_out_comes_from_the_top(tmp_path: Path) -> None:
    settings = load(written(tmp_path, FILE))
    default, routes, reads_all = chosen(settings)
    assert (default.reader, default.adapter, reads_all) == ("generative", tmp_path / "base/adapter", False)
    assert sorted(routes) == ["en", "es", "yue", "zh"]
    english, chinese, spanish = routes["en"], routes["zh"], routes["es"]
    assert (english.model, english.adapter, english.threads) == (tmp_path / "base", tmp_path / "english", 2)
    # Another engine, or another model, has no use for the top's model and adapter.
    assert (chinese.reader, chinese.model, chinese.threads) == ("encoder", None, 1)
    assert chinese.adapter == shipped.ADAPTER
    assert (spanish.model, spanish.adapter, spanish.dtype) == (tmp_path / "spanish", None, "float32")
    assert routes["yue"] == chinese


def test_a_table_for_all_others_is_the_default(tmp_path: Path) -> None:
    default, routes, reads_all = chosen(load(written(tmp_path, FILE + OTHERS)))
    assert (default.reader, default.model, "*" in routes, reads_all) == ("rule", None, False, True)


def test_without_tables_the_top_reads_all() -> None:
    default, routes, reads_all = chosen(load({}))
    assert (default, routes, reads_all) == (load({}), {}, True)


def test_the_environment_forces_one_reader(tmp_path: Path) -> None:
    environment = written(tmp_path, FILE)
    assert (row(environment).value, row(environment).source) == ("3 tables, default generative", Source.FILE)
    forced = environment | {"VOLTEFACE_READER": "rule"}
    assert (load(forced).reader, load(forced).readers) == ("rule", ())
    assert row(forced).value == "0 tables in force: VOLTEFACE_READER makes rule read all languages"


def test_an_engine_is_made_of_every_route(tmp_path: Path) -> None:
    made = roles.engine_factory(load(written(tmp_path, FILE)))
    default, routes = made.args  # type: ignore[attr-defined]
    assert isinstance(default, ReaderSettings)
    assert {language: asked.engine for language, asked in routes.items()} == {
        "en": "generative",
        "es": "generative",
        "yue": "encoder",
        "zh": "encoder",
    }
    assert made.keywords == {"reads_all": False}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("toml", "setting", "got", "remedy"),
    [
        ("readers = 3", "readers", "integer", "[[readers]]"),
        ('readers = ["en"]', "readers", "array", "[[readers]]"),
        ('[[readers]]\nreader = "rule"', "readers[0].languages", "unset", '["en", "zh"]'),
        ("[[readers]]\nlanguages = []", "readers[0].languages", "array", '["*"]'),
        ('[[readers]]\nlanguages = "en"', "readers[0].languages", "string of 2 characters", '["*"]'),
        ('[[readers]]\nlanguages = ["English!"]', "readers[0].languages", "array", '["*"]'),
        ('[[readers]]\nlanguages = ["en"]\nreader = "oracle"', "readers[0].reader", "6 characters", "rule"),
        ('[[readers]]\nlanguages = ["en"]\nthreads = 0', "readers[0].threads", "integer", "from 1"),
        ('[[readers]]\nlanguages = ["en"]\nadaptr = "x"', "readers[0].adaptr", "unknown key", "adapter?"),
        ('[[readers]]\nlanguages = ["en"]\nbroker = "x"', "readers[0].broker", "unknown key", "use one of"),
        (FILE + '[[readers]]\nlanguages = ["EN"]', "readers.languages", "en stands in two", "once"),
    ],
)
def test_a_wrong_table_is_refused_by_table_and_field(
    tmp_path: Path, toml: str, setting: str, got: str, remedy: str
) -> None:
    environment = written(tmp_path, toml)
    with pytest.raises(SettingsError) as raised:
        load(environment)
    assert (raised.value.setting, raised.value.source) == (setting, Source.FILE)
    assert got in raised.value.got
    assert remedy in raised.value.remedy
    assert row(environment).problem is not None


def test_a_key_of_a_remote_server_is_not_shown(tmp_path: Path) -> None:
    toml = '[[readers]]\nlanguages = ["en"]\nreader = "remote"\nremote_key = "hunter2"\n'
    settings = load(written(tmp_path, toml))
    assert chosen(settings)[1]["en"].remote_key == "hunter2"
    [route] = settings.readers
    assert "hunter2" not in f"{route!r}{pretty_repr(route)}{pretty_repr(settings)}"
