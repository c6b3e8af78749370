"""A tiny language model, made here: random weights, a tokenizer learned from the instruction's own text."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from models.language.backbone import Backbone, Placement, load, local
from models.language.prompts import INSTRUCTION
from models.language.rule import RuleEngine
from models.reader import ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Observation
from tracker.stances import Stance

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([INSTRUCTION], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2]
    )
    fast.chat_template = TEMPLATE
    return fast


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.15,  # so wide that labels differ visibly
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Backbone:
    return load(local(tiny_folder), placement=Placement("cpu", "float32", threads=1))


@pytest.fixture(scope="session")
def smollm2() -> Backbone:
    """The real embedded model, converted once a machine."""
    from models.language.weights import SMOLLM2, resolve
    from models.language.wheels import cache_folder

    return load(resolve(SMOLLM2, cache=cache_folder()), placement=Placement("cpu", "float32", threads=1))


@pytest.fixture
def observation() -> Observation:
    """Any observation: what asks for an explanation does not read it."""
    return RuleEngine().observe(
        [ObserveRequest("", WindowTurn("9", "Maya", "+1"), 0, "t-1", "", Stance.OPPOSE)]
    )[0]


@pytest.fixture
def ask() -> Callable[..., ObserveRequest]:
    """A request whose new turn is `text` by Maya, in a short argument with Tom."""

    def made(text: str = "ok you convinced me", **changes: object) -> ObserveRequest:
        fields: dict[str, object] = {
            "conversation": "room",
            "revision": 0,
            "target": "t-1",
            "proposition": "The debate concerning whether the office should get a second dog",
            "state": Stance.OPPOSE,
            "window": (
                WindowTurn("1", "Maya", "one dog is plenty"),
                WindowTurn("2", "Tom", "the vet says a lone dog gets ill", reply_to="1"),
            ),
        }
        turn = {"turn": "9", "holder": "Maya", "reply_to": "2"}
        turn |= {key: changes.pop(key) for key in ("holder", "reply_to", "media") if key in changes}
        return ObserveRequest(turn=WindowTurn(text=text, **turn), **(fields | changes))

    return made
