"""`volteface replay --compare` as a person gives it, beside a run in a real broker."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer

from stream.backtest import Report
from stream.cli import backtest
from stream.embedded import EmbeddedRedis
from stream.findings import Difference, Told, findings
from stream.settings import Settings
from tests.end_to_end.harness import LEFT_OPEN, environment, settings_of
from tests.stream.fakes import START, target, turn
from tests.stream.rebuilding.stand import X, standing
from tracker.backtest import Change, Plan
from tracker.conversation import Rules
from tracker.events import TargetRef
from tracker.policy import Policy
from tracker.stances import Stance

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

ROOT = Path(__file__).parents[3]
# As `replay --compare` calls it.
ALONE = """
import typer
from stream.cli import backtest
def main(
    run: str = "r",
    policy: backtest.PolicyOption = None,
    baseline: backtest.BaselineOption = None,
    conversation: str | None = None,
    since: backtest.SinceOption = None,
    json: backtest.JsonOption = False,
) -> None:
    backtest.compare(run, policy, baseline, conversation, since, json=json)
typer.run(main)
"""
LOOSE, STRICT = 'name = "loose"\n', 'name = "strict"\nrelevance = 1.0\nexempt_holders = ["ann"]\n'
READERS = """
[[readers]]
languages = ["zh"]
[[readers]]
languages = ["*"]
policy = "others.toml"
"""


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture
def settings(broker: str, redis_url: str, topic_prefix: str) -> Settings:
    return settings_of(f"kafka://{broker}", redis_url, topic_prefix, idempotence=False, run="r")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("loose", LOOSE), ("strict", STRICT), ("others", 'name = "others"\n')):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    (tmp_path / "settings.toml").write_text(READERS, encoding="utf-8")
    return tmp_path


async def compare(settings: Settings, *arguments: object) -> tuple[int, str, str]:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", ALONE, *map(str, arguments)],
        cwd=ROOT, env=environment(settings), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
async def test_what_differs_is_printed_for_people_and_for_machines(settings: Settings, files: Path) -> None:
    texts = ["+1", "-1", "+1"]
    turns = [
        turn(f"{who}-{n}", text, holder=who, seconds=n)
        for n, text in enumerate(texts)
        for who in ("ann", "bo")
    ]
    async with standing(settings) as stand:
        await stand.produce([target(), *turns])
        await stand.apply(stand.items)
        status, shown, said = await compare(settings, "--policy", files / "strict.toml")
        assert (status, said.splitlines()[0].partition(" beside ")[0]) == (
            0, "run r: 1 conversations, what stands",
        )  # fmt: skip
        rows = [line.split() for line in shown.splitlines()]
        assert ["all", "2", "0", "2", "0", "2", "0"] in rows
        assert ["und", "2", "0", "2", "0", "2", "0"] in rows
        assert ["vanishes", "default/a", "ann", X, "ann-1"] in [row[:5] for row in rows], shown
        status, shown, said = await compare(settings, "--policy", files / "strict.toml", "--json")
        found = [msgspec.json.decode(line, type=Difference) for line in shown.splitlines()]
        assert [(one.change, one.turn, one.candidate) for one in found] == [
            (Change.VANISHES, "ann-1", None), (Change.VANISHES, "ann-2", None),
        ]  # fmt: skip
        status, shown, said = await compare(settings, "--policy", files / "loose.toml", "--json")
        assert (status, shown) == (0, "")
        assert "0 of 6 observations stale" in said
        rest = ("--baseline", files / "strict.toml", "--conversation", "b", "--since", "2026-11-29T20:00:00Z")
        status, shown, said = await compare(settings, "--policy", files / "loose.toml", "--json", *rest)
        assert (status, shown) == (0, ""), said
        assert said.startswith("run r: 0 conversations, policy strict@"), said
        status, _, said = await compare(settings, "--policy", files / "loose.toml", "--run", "never")
        assert (status, "volteface replay: run never has no topic" in said) == (1, True), said
        assert "Traceback" not in said


def given(folder: Path) -> dict[str, str]:
    return {"VOLTEFACE_CONFIG": str(folder / "settings.toml"), "VOLTEFACE_POLICY": str(folder / "loose.toml")}


def test_a_policy_takes_the_place_that_it_would_take_live(files: Path) -> None:
    now = backtest.rules(given(files), (), "")
    assert (now.policy.name, now.policies["zh"].name) == ("others", "loose")
    strict, others = str(files / "strict.toml"), str(files / "others.toml")
    for_all = backtest.rules(given(files), [strict], "--policy")
    assert (for_all.policy.name, for_all.policies["zh"].name) == ("others", "strict")
    assert for_all.policy.exempt_holders == {"ann"}
    both = backtest.rules(given(files), [strict, f"zh-Hans={others}", f"*={strict}"], "--policy")
    assert (both.policy.name, both.policies["zh"].name) == ("strict", "others")


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (["{}/strict.toml", "{}/loose.toml"], "one FILE for all"),
        (["en={}/strict.toml"], "names en: give its FILE alone"),
        (["zh={}/nothing.toml"], "No such file"),
        (["{}/settings.toml"], "unknown field `readers`"),
        (["zh={}/settings.toml"], "unknown field `readers`"),
    ],
)
def test_what_a_person_can_mend(files: Path, policy: list[str], words: str) -> None:
    with pytest.raises(typer.BadParameter, match=words):
        backtest.rules(given(files), [one.format(files) for one in policy], "--policy")


@pytest.mark.parametrize("since", ["yesterday", "2026-11-29T20:14:05"])
def test_a_time_needs_its_zone(files: Path, since: str) -> None:
    with pytest.raises(typer.BadParameter, match="a time with zone"):
        backtest.compare(None, [str(files / "loose.toml")], since=since)


def test_a_candidate_is_needed() -> None:
    with pytest.raises(typer.BadParameter, match="candidate"):
        backtest.compare(None, [])


def test_what_a_reader_must_know_is_said() -> None:
    plan = Plan(Rules(Policy("now")), Rules(Policy("then")), Rules(Policy("then")))
    report = Report(
        conversations=9, partial=1, failed=2, unreadable=3, observations=5, stale=4, unread=6, unlike=7,
        kindless=8,
    )  # fmt: skip
    said = list(backtest.said("live", plan, report))
    assert said[0].startswith("run live: 9 conversations, policy then@")
    assert said[1].startswith("4 of 5 observations stale")
    assert said[2] == "both policies are the same"
    assert [line.partition(" ")[0] for line in said[3:]] == ["1", "7", "6", "8", "3", "2"]
    assert len(list(backtest.said("live", Plan(Rules(), Rules(Policy("then"))), Report()))) == 2


def test_what_people_wrote_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told(Stance.SUPPORT, Stance.OPPOSE, 0.875, (), taken_back=True)
    with findings() as found:
        for at in range(backtest.SHOWN_DIFFERENCES + 3):
            one = Difference(
                change=Change.CHANGES, tenant="default", run="live", conversation=f"[red]a-{at}",
                holder="an\x1bn", target=TargetRef("t-1", "whether [b]x"), turn="m-1", sent_at=START,
                language="en", base=told, candidate=None, looks_false=True, stale=True, partial=True,
            )  # fmt: skip
            found.add([one])
        backtest.show(found)
    shown = capsys.readouterr().out
    assert "(3 more: --json prints all)" in shown
    assert "default/[red]a-0" in shown
    assert "an\\x1bn" in shown
    assert "support to oppose 0.88" in shown
    assert "looks false, stale, partial" in shown
    assert "a-201" not in shown
