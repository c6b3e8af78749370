from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from models import shipped
from models.language.registry import ReaderSettings
from stream import roles
from stream.options import SettingsError, Source
from stream.routes import chosen, policies
from stream.settings import Row, load, survey
from tracker.records import HolderKind

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
    assert chinese.adapter == shipped.ENCODER
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
    assert row(environment).value.startswith("3 tables, default generative; en by policy ")
    assert row(environment).source is Source.FILE
    forced = environment | {"VOLTEFACE_READER": "rule"}
    assert (load(forced).reader, load(forced).readers) == ("rule", ())
    assert row(forced).value == "0 tables in force: VOLTEFACE_READER makes rule read all languages"


def fitted(folder: Path, name: str, more: str = "") -> Path:
    """A folder with a policy of that name, as an adapter brings one."""
    (folder / name).mkdir(parents=True)
    (folder / name / shipped.POLICY).write_text(f'name = "{name}"\n{more}')
    return folder / name


JUDGED = """
reader = "generative"
adapter = "top"
[[readers]]
languages = ["en"]
threads = 1
[[readers]]
languages = ["zh"]
adapter = "chinese"
[[readers]]
languages = ["es"]
adapter = "chinese"
policy = "spanish/policy.toml"
[[readers]]
languages = ["de"]
reader = "rule"
[[readers]]
languages = ["fr"]
reader = "encoder"
"""


@pytest.fixture
def adapters(tmp_path: Path) -> Path:
    for name in ("top", "chinese", "spanish", "own"):
        fitted(tmp_path, name)
    return tmp_path


def judging(environment: dict[str, str]) -> dict[str, str]:
    default, by_language = policies(load(environment))
    return {"*": default.name} | {language: policy.name for language, policy in by_language.items()}


def test_every_reader_is_judged_by_a_policy_of_its_own(adapters: Path) -> None:
    environment = written(adapters, JUDGED)
    found = {"*": "top", "en": "top", "zh": "chinese", "es": "spanish", "fr": shipped.ENCODER.name}
    # What came with the top's adapter says nothing about an engine without it.
    assert judging(environment) == found | {"de": "default"}
    assert "; es by policy spanish@" in row(environment).value


def test_a_policy_set_at_the_top_judges_all_who_bring_none(adapters: Path) -> None:
    own = {"VOLTEFACE_POLICY": str(adapters / "own" / shipped.POLICY)}
    found = {"*": "own", "en": "own", "zh": "chinese", "es": "spanish", "fr": shipped.ENCODER.name}
    assert judging(written(adapters, JUDGED) | own) == found | {"de": "own"}


def test_the_reader_of_all_others_has_its_policy_too(adapters: Path) -> None:
    others = '[[readers]]\nlanguages = ["*"]\nadapter = "own"\n'
    assert judging(written(adapters, JUDGED + others))["*"] == "own"


def test_exemptions_of_the_top_hold_for_every_reader(adapters: Path) -> None:
    (adapters / "top" / shipped.POLICY).write_text('exempt_holders = ["ann"]\nexempt_kinds = ["bot"]\n')
    default, by_language = policies(load(written(adapters, JUDGED + OTHERS)))
    for policy in (default, *by_language.values()):
        assert (policy.exempt_holders, policy.exempt_kinds) == ({"ann"}, {HolderKind.BOT})


def test_one_reader_for_all_has_one_policy(adapters: Path) -> None:
    assert judging(written(adapters, JUDGED) | {"VOLTEFACE_READER": "rule"}) == {"*": "top"}
    assert judging({}) == {"*": shipped.ENCODER.name}


@pytest.mark.parametrize(
    ("table", "text", "source", "got", "remedy"),
    [
        ("policy = 3", "", Source.FILE, "integer", "the path of a policy's TOML file"),
        ('policy = "gone.toml"', "", Source.FILE, "string of 9 characters", "No such file"),
        ('policy = "a/policy.toml"', "[flip]\nmargin = 2", Source.FILE, "string of 13", "margin"),
        ('policy = "a/policy.toml"', "nonsense", Source.FILE, "string of 13", "policy's TOML file"),
        (
            'policy = "a/policy.toml"',
            'exempt_holders = ["x"]',
            Source.FILE,
            "string of 13",
            "top-level policy",
        ),
        ('policy = "a/policy.toml"', 'exempt_kinds = ["bot"]', Source.FILE, "string of 13", "exempt_kinds"),
        ('adapter = "a"', "nonsense", Source.DEFAULT, "the adapter's", "set a policy of its own"),
        ('adapter = "a"', 'exempt_kinds = ["bot"]', Source.DEFAULT, "the adapter's", "exempt_kinds"),
    ],
)
def test_a_wrong_policy_is_refused_by_its_table(
    tmp_path: Path, table: str, text: str, source: Source, got: str, remedy: str
) -> None:
    (fitted(tmp_path, "a") / shipped.POLICY).write_text(text)
    environment = written(tmp_path, f'[[readers]]\nlanguages = ["en"]\n{table}\n')
    with pytest.raises(SettingsError) as raised:
        load(environment)
    assert (raised.value.setting, raised.value.source) == ("readers[0].policy", source)
    assert got in raised.value.got
    assert remedy in raised.value.remedy
    problem = row(environment).problem
    assert problem is not None
    assert str(problem) == str(raised.value)


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


def test_a_critic_is_for_readers_that_can_be_talked_to_and_may_differ_by_language(tmp_path: Path) -> None:
    settings = load(
        written(
            tmp_path,
            'critic = true\ntargets = "found"\nreader = "generative"\n'
            '[[readers]]\nlanguages = ["zh"]\ncritic = false\n'
            '[[readers]]\nlanguages = ["es"]\nreader = "rule"\n',
        )
    )
    default, routes = roles.engine_factory(settings).args  # type: ignore[attr-defined]
    assert [(one.critic, one.finds) for one in (default, routes["zh"], routes["es"])] == [
        (True, True),
        (False, True),
        (False, False),
    ]


def test_a_critic_over_a_reader_that_cannot_be_talked_to_is_refused_by_its_table(tmp_path: Path) -> None:
    toml = 'reader = "generative"\n[[readers]]\nlanguages = ["en"]\nreader = "rule"\ncritic = true\n'
    with pytest.raises(SettingsError) as raised:
        load(written(tmp_path, toml))
    assert (raised.value.setting, raised.value.got) == ("readers[0].critic", "true with reader rule")
    assert "generative or remote" in raised.value.remedy
