"""Logs: one pipeline for all loggers, private fields dropped, and a second call that doubles nothing."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import structlog

from stream.logs import PRIVATE, configure
from stream.settings import load
from tracker.records import Media, Modality

SECRET = "a word that nobody should find in a log"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging as it was before the test."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def configured(**settings: str) -> Any:
    configure(load({f"VOLTEFACE_{name.upper()}": value for name, value in settings.items()}))
    return structlog.get_logger("stream.test")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [orjson.loads(line) for line in captured.err.splitlines()]


def test_our_logs_are_json_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configured().warning("batch", records=3, seconds=0.5)
    (line,) = lines(capsys)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "batch",
        "records": 3,
        "seconds": 0.5,
        "level": "warning",
        "logger": "stream.test",
    }


@pytest.mark.parametrize("name", ["faust", "mode", "aiokafka.consumer", "aiohttp.client", "other"])
def test_other_peoples_logs_take_the_same_way(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger(name.partition(".")[0]).addHandler(logging.StreamHandler())
    configured()
    if name == "other":
        logging.getLogger(name).handlers.clear()
    logging.getLogger(name).error("lost %s of %d", "one", 2)
    (line,) = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("lost one of 2", "error", name)
    assert line["timestamp"]


@pytest.mark.parametrize(("level", "count"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_the_level_rules_both(level: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    log = configured(log_level=level)
    for logger in (log, logging.getLogger("other")):
        logger.debug("d")
        logger.info("i")
        logger.warning("w")
    assert len(lines(capsys)) == 2 * count


@pytest.mark.parametrize(
    "name", ["aiohttp.access", "faust.app.base", "mode.supervisors", "aiokafka.consumer", "stream.transport"]
)
def test_what_libraries_say_at_info_is_for_debugging(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_level="info")
    logging.getLogger(name).info("GET /v1/conversations/ada")
    assert lines(capsys) == []
    configured(log_level="debug")
    logging.getLogger(name).info("GET /v1/conversations/ada")
    assert len(lines(capsys)) == 1


def test_what_a_client_sent_that_is_no_http_is_not_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_level="info")
    logging.getLogger("aiohttp.server").error("Bad chunk: %s", "ada is lying")
    assert lines(capsys) == []


def test_configuring_again_doubles_nothing_and_takes_the_new_level(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = configured()
    log.info("first")
    configured(log_level="error")
    configured(log_level="error")
    log.info("hidden")
    log.error("second")
    assert [line["event"] for line in lines(capsys)] == ["first", "second"]


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("level", ["info", "warning", "error", "critical"])
@pytest.mark.parametrize("field", sorted(PRIVATE))
def test_private_fields_are_dropped(
    form: str, level: str, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = configured(log_format=form)
    fields = {field: SECRET, "turn": "m-1", "nested": {field: SECRET, "deep": [{field: SECRET}]}}
    getattr(log, level)("applied", **fields)
    written = capsys.readouterr().err
    assert SECRET not in written
    assert "m-1" in written


@pytest.mark.parametrize("form", ["json", "console"])
def test_private_fields_show_when_debugging(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_level="debug", log_format=form).debug("read", text=SECRET)
    assert SECRET in capsys.readouterr().err


@pytest.mark.parametrize("form", ["json", "console"])
def test_bound_and_context_fields_are_guarded_too(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = configured(log_format=form).bind(holder=SECRET)
    with structlog.contextvars.bound_contextvars(display_name=SECRET, conversation="room"):
        log.info("applied")
    written = capsys.readouterr().err
    assert SECRET not in written
    assert "room" in written


@pytest.mark.parametrize("form", ["json", "console"])
def test_objects_are_not_printed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format=form).info("applied", media=(Media(Modality.IMAGE, description=SECRET),))
    written = capsys.readouterr().err
    assert SECRET not in written
    assert "<Media>" in written


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("ours", [True, False])
def test_tracebacks_are_whole_but_show_no_locals(
    form: str, ours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    log = configured(log_format=form)
    text = SECRET.upper()
    try:
        raise RuntimeError(f"no answer in {len(text)}")
    except RuntimeError as error:
        kept = error
    (log if ours else logging.getLogger("faust")).error("failed", exc_info=kept)
    written = capsys.readouterr().err
    assert "RuntimeError: no answer in" in written
    assert "test_logs.py" in written
    assert text not in written


def test_what_json_cannot_hold_is_logged_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    configured().info("odd", half="\ud800", huge=2**80, error=ValueError("why"), where=logging)
    line = json.loads(capsys.readouterr().err)
    assert (line["half"], line["huge"], line["error"], line["where"]) == ("\ud800", 2**80, "why", "<module>")


def test_the_console_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format="console").info("batch", records=3)
    written = capsys.readouterr().err
    assert "records=3" in written
    assert not written.startswith("{")
