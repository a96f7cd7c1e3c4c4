"""Every document of the corpora: ids of our GPT-2 against HF's and tiktoken's.

    SAPHIRA_TEST_DATA=… python tests/exact_corpora.py [--every N]

Prints, for each corpus, tokenizer file, instruction set and reference: documents, bytes, ids and
differences. Exit status 1 if there is any difference. special="parse" is compared with HF, "plain"
with tiktoken's `encode_ordinary`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("SAPHIRA_FUZZ", "1:1")  # oracles.py asks for it; nothing here is random

import numpy as np
import oracles
import pyarrow.parquet as pq
import tokenizers

import saphira_gpu
from saphira_gpu.engines import cpu

BATCH = 1000


@dataclass
class Result:
    name: str
    documents: int = 0
    bytes: int = 0
    ids: int = 0
    differences: int = 0

    def __str__(self) -> str:
        return (
            f"{self.name:50} {self.documents:8,} documents {self.bytes:12,} bytes "
            f"{self.ids:12,} ids {self.differences:4} differences"
        )


def batches(path: Path, every: int) -> Iterator[list[str]]:
    """Every `every`-th document, in lists of at most BATCH."""
    documents = pq.read_table(path, columns=["text"])["text"].to_pylist()[::every]
    for first in range(0, len(documents), BATCH):
        yield documents[first : first + BATCH]


def different(tokens: saphira_gpu.Tokens, expected: Sequence[Sequence[int]]) -> int:
    """How many rows are not as expected."""
    flat = np.fromiter((id for ids in expected for id in ids), np.uint32)
    offsets = np.concatenate(([0], np.cumsum([len(ids) for ids in expected], dtype=np.int64)))
    if np.array_equal(tokens.offsets, offsets) and np.array_equal(tokens.ids, flat):
        return 0
    return sum(
        not np.array_equal(tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]], ids)
        for i, ids in enumerate(expected)
    )


def compare(path: Path, every: int = 1) -> list[Result]:
    """One Result for each instruction set, tokenizer of ours and reference.

    Ours are the embedded GPT-2 and, where they lie beside the corpora, OpenAI's rank file and HF's
    tokenizer.json. HF is built from that tokenizer.json, else from the embedded ranks.
    """
    files = path.parent.parent / "vocabs"
    hf_file = files / "gpt2/tokenizer.json"
    ours = {"gpt2": saphira_gpu.Tokenizer.load("gpt2")}
    for file in (files / "r50k_base/r50k_base.tiktoken", hf_file):
        if file.exists():
            ours[file.name] = saphira_gpu.Tokenizer.load(file)
    hf = tokenizers.Tokenizer.from_file(str(hf_file)) if hf_file.exists() else oracles.hf_gpt2()
    tiktoken = oracles.tiktoken_gpt2()
    before = cpu.isa()
    results = {
        (isa, name, peer): Result(f"{path.stem} {name} {isa} = {peer}")
        for isa in cpu.isas()
        for name in ours
        for peer in ("hf", "tiktoken")
    }
    try:
        for texts in batches(path, every):
            expected = {
                "hf": ("parse", oracles.hf_ids(hf, texts)),
                "tiktoken": ("plain", tiktoken.encode_ordinary_batch(texts, num_threads=2)),
            }
            for (isa, name, peer), result in results.items():
                cpu.select_isa(isa)
                special, wanted = expected[peer]
                tokens = ours[name].encode_batch(texts, special=special)
                result.documents += len(texts)
                result.bytes += sum(len(text.encode()) for text in texts)
                result.ids += len(tokens.ids)
                result.differences += different(tokens, wanted)
    finally:
        cpu.select_isa(before)
    return list(results.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="take every N-th document only")
    every = parser.parse_args().every
    if not os.environ.get("SAPHIRA_TEST_DATA"):
        parser.error("SAPHIRA_TEST_DATA is not set")
    wrong = 0
    for path in sorted(Path(os.environ["SAPHIRA_TEST_DATA"], "corpora").glob("*.parquet")):
        for result in compare(path, every):
            print(result, flush=True)
            wrong += result.differences
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
