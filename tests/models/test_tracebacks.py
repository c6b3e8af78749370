from models.tracebacks import frames


def test_frames_say_where_and_never_what() -> None:
    try:
        raise ValueError("what ada wrote")
    except ValueError as error:
        told = frames(error)
    assert told[-1].endswith(" test_frames_say_where_and_never_what")
    assert "ada" not in " ".join(told)
