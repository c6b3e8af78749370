"""What is trained is what is served: the same tokens, the same places, the same scores."""

import msgspec
import pytest
import torch

from models.language.backbone import Backbone, Placement, load
from models.language.chat import talk
from models.language.generative import GenerativeEngine, Limits
from models.language.labels import Tree
from models.language.local_chat import LocalChat
from models.language.prefix import blank, extend
from models.language.prompts import INSTRUCTION, REASON_INSTRUCTION
from models.language.rule import RuleEngine
from models.language.scoring import Scorer
from models.language.triggers import SOURCE, weights_of
from models.language.weights import Found
from models.language.writing import Writer
from models.reader import ExplainRequest
from models.training.lessons import Cause, Choice, Reading, Reason, Text, lessons
from models.training.passes import IGNORED, answers, targets
from models.training.samples import Sampler, Slotted, Written
from tests.models.training.flips import RATIONALE, explained
from tracker.stances import Emotion, Expressed

LESSONS = lessons(explained(4))
READINGS = [one for one in LESSONS if isinstance(one, Reading)]
(CAUSE, *_) = [one for one in LESSONS if isinstance(one, Cause)]
(REASON, *_) = [one for one in LESSONS if isinstance(one, Reason)]


@pytest.fixture(scope="module")
def backbone(speaker: Found) -> Backbone:
    return load(speaker, placement=Placement("cpu", "float32", threads=1))


@pytest.fixture(scope="module")
def sampler(backbone: Backbone) -> Sampler:
    return Sampler(backbone, 640)


def losses(sampler: Sampler, *lessons: object, shared: bool = True) -> dict[str, torch.Tensor]:
    samples = [sampler(lesson) for lesson in lessons]
    return {one.name: one.losses for part in answers(sampler, samples, shared=shared) for one in part}


def test_a_label_is_taught_by_the_probability_that_the_engine_gives_it(
    backbone: Backbone, sampler: Sampler
) -> None:
    engine = GenerativeEngine(backbone, Limits(640), correct=False)
    seen = engine.observe([one.example.request for one in READINGS])
    found = losses(sampler, *READINGS)
    served = [
        one.expressed[Expressed(str(r.example.labels.expressed))]
        for one, r in zip(seen, READINGS, strict=True)
    ]
    assert torch.exp(-found["position"]).tolist() == pytest.approx(served, abs=1e-5)
    assert len(found["emotion"]) == len(found["sentiment"]) == len(READINGS)


def test_the_tree_is_the_engines_own_and_the_prompt_token_for_token(
    backbone: Backbone, sampler: Sampler
) -> None:
    engine = GenerativeEngine(backbone)
    for name, served in (("observe", engine._tree), ("explain", engine._attribution._tree)):
        assert sampler.tree(name).ids == served.ids
        assert sampler.tree(name).forks == served.forks
    sample = sampler(READINGS[1])
    assert sample.body == backbone.encode(engine.body(READINGS[1].example.request))
    assert (sample.instruction, sampler.frame(INSTRUCTION)) == (INSTRUCTION, backbone.frame(INSTRUCTION))


def test_what_explains_is_asked_as_it_is_taught(
    backbone: Backbone, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    read, write = Scorer.read, Writer.write
    monkeypatch.setattr(
        Scorer, "read", lambda self, bodies, tree: asked.extend(bodies) or read(self, bodies, tree)
    )
    monkeypatch.setattr(Writer, "write", lambda self, bodies: asked.extend(bodies) or write(self, bodies))
    engine = GenerativeEngine(backbone, Limits(640), correct=False)
    request = CAUSE.example.request
    (said,) = engine.explain([ExplainRequest(request, RuleEngine().observe([request])[0], CAUSE.after)])
    reason = msgspec.structs.replace(REASON, kind=said.trigger.kind, mover=said.trigger.turns[0])
    assert [backbone.encode(body) for body in asked] == [sampler(CAUSE).body, sampler(reason).body]


def test_a_slots_loss_stands_at_its_label_tokens_alone(backbone: Backbone, sampler: Sampler) -> None:
    """Only forks are looked at: logits elsewhere, or of tokens that no label begins with, change nothing."""
    tree: Tree = sampler.tree("observe")
    logits = torch.randn(1, len(tree.forks), len(backbone.tokenizer))
    labels = {label for node in tree.forks for label in tree._children[node]}
    noise = torch.randn_like(logits)
    noise[..., sorted(labels)] = 0.0
    for cue, scores in tree.scores(logits).items():
        assert torch.allclose(scores, tree.scores(logits + noise)[cue])


def test_a_source_is_taught_as_the_engine_weighs_it(backbone: Backbone, sampler: Sampler) -> None:
    sample = sampler(CAUSE)
    assert isinstance(sample, Slotted)
    assert sample.right[SOURCE.cue] == [2]  # letter C: Tom's turn before the flip
    assert sample.chances == {SOURCE.cue: weights_of(CAUSE.example.request)}
    found = losses(sampler, CAUSE)
    head, tail = backbone.frame(INSTRUCTION)
    tree = sampler.tree("explain")
    scores = tree.scores(
        extend(backbone.model, blank(backbone.model, 1), [[*head, *sample.body, *tail]], tree)
    )
    weighed = scores[SOURCE.cue].exp() * torch.tensor(sample.chances[SOURCE.cue])
    assert found["source"].exp().item() == pytest.approx((weighed.sum() / weighed[0, 2]).item(), rel=1e-2)
    assert set(found) == {"cause", "source"}


def test_words_end_and_no_prompt_token_is_a_target(backbone: Backbone, sampler: Sampler) -> None:
    sample = sampler(REASON)
    assert isinstance(sample, Written)
    assert sample.instruction == REASON_INSTRUCTION
    assert sample.answer == [*backbone.encode(RATIONALE), 2]
    assert sample.answer[-1] in backbone.stops
    longer = Written("", [5, 6], [7, 8, *sample.answer])
    made = targets([sample, longer], backbone.device)
    assert made[0].tolist() == [IGNORED, IGNORED, *sample.answer]
    assert made[1].tolist() == longer.answer


def test_a_choice_is_taught_by_the_probability_that_a_chat_gives_it(
    backbone: Backbone, sampler: Sampler
) -> None:
    labels, asked = ("yes", "no", "1", "12"), ("Is it so?", "Is it?")
    served = LocalChat(backbone).choose([talk("You judge.", one) for one in asked], labels)
    found = losses(sampler, *(Choice("You judge.", one, labels, ("no", "12")) for one in asked))
    right = [row[1] + row[3] for row in served]
    assert torch.exp(-found["answer"]).tolist() == pytest.approx(right, abs=1e-5)


def test_words_are_taught_behind_what_a_chat_reads(backbone: Backbone, sampler: Sampler) -> None:
    text = Text("You judge.", "Is it so?", "It is.")
    sample = sampler(text)
    head, tail = sampler.frame(text.instruction)
    read = LocalChat(backbone)._ids(talk(text.instruction, text.shown), depth=0)
    assert read == (tuple(head), [*sample.body, *tail])


def test_a_choice_must_fit_as_a_text_must(sampler: Sampler) -> None:
    choice = Choice("You judge.", "Is it so?", ("yes", "no"), ("no",))
    length = sampler(choice).length
    assert sampler.fits(choice, longest=length)
    assert not sampler.fits(choice, longest=length - 1)


def test_samples_of_every_kind_share_a_step(sampler: Sampler) -> None:
    """Kinds are what batches are sorted by: they must compare."""
    choices = [
        Choice("You judge.", "Is it so?", labels, labels[:1]) for labels in (("yes", "no"), ("1", "2"))
    ]
    kinds = sorted(sampler(one).kind for one in (*choices, READINGS[0], CAUSE, REASON))
    assert len(set(kinds)) == 5


def test_a_reason_is_taught_only_where_its_mover_stays_in_view(backbone: Backbone, sampler: Sampler) -> None:
    assert sampler.fits(REASON, longest=1)  # which bounds whole dialogues alone
    assert REASON.example.request.turn.turn != REASON.mover
    assert not Sampler(backbone, budget=64).fits(REASON, longest=2048)


def test_a_text_must_fit_what_the_model_attends_to(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = lessons(explained(1), "dialogue")
    length = sampler(text).length
    assert sampler.fits(text, longest=length)
    assert not sampler.fits(text, longest=length - 1)
    needed = length + sum(map(len, sampler.frame(text.instruction)))
    for positions, fits in ((needed, True), (needed - 1, False)):
        monkeypatch.setattr(Backbone, "positions", positions)
        assert sampler.fits(text, longest=2048) is fits


def test_words_are_taught_as_the_whole_sequence_says(backbone: Backbone, sampler: Sampler) -> None:
    sample, other = sampler(REASON), Written(REASON_INSTRUCTION, [9] * 40, [5, 6, 2])
    head, tail = backbone.frame(REASON_INSTRUCTION)
    prompt = [*head, *sample.body, *tail]
    ids = torch.tensor([prompt + sample.answer])
    labels = torch.tensor([[IGNORED] * len(prompt) + sample.answer])
    plain = backbone.model(input_ids=ids, labels=labels).loss
    ((found,),) = answers(sampler, [sample, other])
    assert found.losses[0].item() == pytest.approx(plain.item(), rel=1e-4)


def test_a_shared_instruction_gives_the_same_loss_and_gradient(backbone: Backbone, sampler: Sampler) -> None:
    weight = backbone.model.model.layers[0].self_attn.k_proj.weight
    gradients = []
    for shared in (True, False):
        found = losses(sampler, *READINGS[:3], CAUSE, REASON, shared=shared)
        total = torch.stack([one.sum() for one in found.values()]).sum()
        gradients.append((total.item(), *torch.autograd.grad(total, weight)))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-4)
    assert torch.allclose(gradients[0][1], gradients[1][1], atol=1e-4)


def test_gradient_checkpointing_gives_the_same_gradient(backbone: Backbone, sampler: Sampler) -> None:
    weight, found = backbone.model.model.layers[0].self_attn.k_proj.weight, []
    backbone.model.train()
    for on in (False, True):
        if on:
            backbone.model.gradient_checkpointing_enable({"use_reentrant": False})
        made = losses(sampler, *READINGS[:3], REASON, shared=False)
        found.append(torch.autograd.grad(torch.stack([one.sum() for one in made.values()]).sum(), weight)[0])
    backbone.model.gradient_checkpointing_disable()
    backbone.model.eval()
    assert torch.allclose(*found, atol=1e-5)


def test_an_unlabelled_slot_teaches_nothing(sampler: Sampler) -> None:
    labels = msgspec.structs.replace(READINGS[0].example.labels, expressed=None, emotion=Emotion.FEAR)
    example = msgspec.structs.replace(READINGS[0].example, labels=labels)
    assert set(losses(sampler, Reading(example))) == {"emotion", "sentiment"}
