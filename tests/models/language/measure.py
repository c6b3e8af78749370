"""What the generative engine costs on a CPU.

    python -m tests.models.language.measure [TURNS] [THREADS]

Prints wall and processor seconds a turn: with the instruction's cache and without, and beside them what it
costs to have the same labels written as JSON. Windows hold twelve turns of a real length.
"""

import resource
import sys
import time
from collections.abc import Callable

import torch

from models.language.backbone import Placement, load
from models.language.generative import GenerativeEngine
from models.language.prefix import Prefix
from models.language.prompts import INSTRUCTION
from models.language.weights import SMOLLM2, resolve
from models.language.wheels import cache_folder
from models.language.writing import greedy
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.stances import Stance

TEXT = "I looked at the numbers again and honestly the second half of {} still does not add up for me, sorry"
ANSWER = '{"position": "oppose", "emotion": "neutral", "sentiment": "negative"}'


def request(turn: int) -> ObserveRequest:
    window = tuple(WindowTurn(str(at), f"user{at % 4}", TEXT.format(at)) for at in range(turn, turn + 12))
    new = WindowTurn(str(turn + 12), "user1", TEXT.format("it"), reply_to=str(turn + 11))
    proposition = "The debate concerning whether the team should move to a four-day week"
    return ObserveRequest("room", new, 0, "t-1", proposition, Stance.OPPOSE, window)


def timed(name: str, turns: int, work: Callable[[], object]) -> None:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{name:<44} {wall / turns * 1000:8.0f} ms  {processor / turns * 1000:8.0f} ms of processor a turn")


def main(turns: int = 8, threads: int = 2) -> None:
    backbone = load(resolve(SMOLLM2, cache=cache_folder()), placement=Placement("cpu", "float32", threads))
    cached, uncached = (GenerativeEngine(backbone, cached=cache, correct=False) for cache in (True, False))
    requests = [request(turn) for turn in range(turns)]
    head, tail = backbone.frame(INSTRUCTION)
    bodies = [backbone.encode(cached.body(one)) for one in requests]
    print(
        f"{len(head)} tokens of instruction, {len(bodies[0])} of body, {len(backbone.encode(ANSWER))} of JSON"
    )
    cached.observe(requests[:1])
    timed("observe, one by one", turns, lambda: [cached.observe([one]) for one in requests])
    timed(
        "observe, one by one, instruction not cached",
        turns,
        lambda: [uncached.observe([one]) for one in requests],
    )
    timed("observe, in batches", turns, lambda: cached.observe(requests))
    prefix, length = Prefix(backbone.model, head), len(backbone.encode(ANSWER))
    with torch.inference_mode():
        rows = [body + tail for body in bodies]
        timed(
            "the same as JSON, written greedily",
            turns,
            lambda: [greedy(backbone.model, prefix.rows(1), [row], set(), length) for row in rows],
        )
    flip = ExplainRequest(requests[0], cached.observe(requests[:1])[0], Stance.SUPPORT)
    timed("explain", 2, lambda: [cached.explain([flip]) for _ in range(2)])
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB resident at most")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
