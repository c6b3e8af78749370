"""Scoring labels in the pass that reads the prompt, beside writing the same answer as JSON token by token.

The JSON side is given every advantage: the answer is known, so no token of it is wasted, nothing has to be
parsed or asked again. What is left is what any decoder pays, one pass of the model a token. And a written
answer says one label, where scored ones have a probability each.
"""

import asyncio

import msgspec
import torch

from models.language.prefix import Prefix, extend
from models.language.prompts import INSTRUCTION
from models.reader import ObserveRequest
from tests.benchmarks import engines, histories
from tests.benchmarks.measuring import Goal, Result, Scale, interleaved, milliseconds, ratio
from tracker.observations import Observation

DEPTH = 20


class Answer(msgspec.Struct):
    """What a model would be asked to write."""

    position: str
    emotion: str
    sentiment: str


class Writing:
    """Writes known answers behind the prompts that the engine scores, from the same cached instruction."""

    def __init__(self) -> None:
        self._backbone = engines.backbone()
        head, self._tail = self._backbone.frame(INSTRUCTION)
        self._prefix = Prefix(self._backbone.model, head)

    def write(self, request: ObserveRequest, answer: list[int]) -> None:
        """Read the prompt, then take one step a token; the last step finds the end."""
        step = self._backbone.encode(engines.engine().body(request)) + self._tail
        context = self._prefix.rows(1)
        with torch.inference_mode():
            for token in [*answer, *sorted(self._backbone.stops)[:1]]:
                extend(self._backbone.model, context, [step])[:, -1].argmax(dim=-1).tolist()
                step = [token]


def run(scale: Scale) -> Result:
    """The same requests, scored and written."""
    rounds = scale.of(10, 3)
    engine, writing = engines.engine(), Writing()
    requests = asyncio.run(histories.requests(DEPTH, rounds))
    answers = [engines.backbone().encode(written(found)) for found in engine.observe(requests)]
    seconds = interleaved(
        {
            "scored": lambda number: engine.observe([requests[number]]),
            "written": lambda number: writing.write(requests[number], answers[number]),
        },
        rounds,
    )
    return Result(
        name="label_scoring",
        conditions={**engines.conditions(), "rounds": rounds, "answer_tokens": len(answers[0])},
        figures=(
            milliseconds("a turn, labels scored", seconds["scored"]),
            milliseconds("a turn, labels written as JSON", seconds["written"]),
            ratio("scored to written", seconds["scored"], seconds["written"], Goal(most=1.0)),
        ),
    )


def written(observation: Observation) -> str:
    """The observation's likeliest labels as JSON, spaced as models space it."""
    position = observation.expressed.ranked()[0][0]
    answer = Answer(position, observation.emotion, observation.sentiment)
    return msgspec.json.format(msgspec.json.encode(answer), indent=0).decode()
