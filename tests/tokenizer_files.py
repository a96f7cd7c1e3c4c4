"""Small tokenizer files of every format, made from the embedded ranks, and checks on them."""

from __future__ import annotations

import base64
import json
from typing import Any

import tokenizers
from oracles import gpt2_ranks, hf_byte_level, merges_of

import saphira_gpu
from saphira_gpu import Tokenizer
from saphira_gpu.loaders import _bytelevel, tokenizer_json
from saphira_gpu.pretok import schemes

Json = dict[str, Any]
TEXTS = ["", "Hello world", "the theatre's then", "  a  12 34é\n\n", "日本 ☃ <|endoftext|> ok"]


def small_json() -> Json:
    """A tokenizer.json with 266 tokens, of GPT-2's kind."""
    ranks = {token: id for token, id in gpt2_ranks().items() if id < 266}
    tokens = {_bytelevel.to_text(token): id for token, id in ranks.items()}
    document: Json = json.loads(hf_byte_level(tokens, merges_of(ranks)).to_str())
    document["added_tokens"] = [added("<end>", 266)]
    return document


def added(content: str, number: int, **flags: bool) -> Json:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": number, "content": content} | {name: flags.get(name, False) for name in names}


def parse(document: Json) -> saphira_gpu.spec.Spec:
    return tokenizer_json.parse(json.dumps(document).encode(), "t.json")


def sequence(*parts: Any) -> Json:
    return {"type": "Sequence", "pretokenizers": list(parts)}


def split(pattern: str, kind: str = "Regex") -> Json:
    return {
        "type": "Split",
        "pattern": {kind: pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def same_ids(document: Json, texts: list[str]) -> None:
    """Our ids are the reference's, in both of its modes."""
    reference = tokenizers.Tokenizer.from_str(json.dumps(document))
    ours = Tokenizer.from_spec(parse(document))
    for mode, plain in (("parse", False), ("hf_plain", True)):
        reference.encode_special_tokens = plain
        for text in texts:
            expected = reference.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, special=mode).tolist() == expected, (mode, text)


def rank_file(n: int = 300) -> bytes:
    lines = [
        b"%s %d\n" % (base64.b64encode(token), rank)
        for token, rank in gpt2_ranks().items()
        if rank < n
    ]
    return b"".join(lines)


def tekken() -> Json:
    """A tekken.json of 310 ids, the first 20 of them special, with ten ranks too many."""
    patterns = schemes.table()["schemes"]
    ranks = enumerate(rank_file().split(b"\n")[:-1])
    return {
        "config": {
            "pattern": next(s for s in patterns if s["name"] == "tekken")["patterns"]["tiktoken"],
            "num_vocab_tokens": 300,
            "default_vocab_size": 310,
            "default_num_special_tokens": 20,
            "version": "v3",
        },
        "vocab": [
            {"rank": rank, "token_bytes": line.split()[0].decode(), "token_str": None}
            for rank, line in ranks
        ],
    }


def vocab_merges() -> tuple[bytes, bytes]:
    """vocab.json and merges.txt of `small_json`, with <|endoftext|> in the vocabulary."""
    model = small_json()["model"]
    merges = [entry if isinstance(entry, str) else " ".join(entry) for entry in model["merges"]]
    lines = ["#version: 0.2", *merges, ""]
    return json.dumps(model["vocab"] | {"<|endoftext|>": 266}).encode(), "\n".join(lines).encode()
