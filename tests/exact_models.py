"""Every published tokenizer against the library it belongs to, at length.

    SAPHIRA_TEST_DATA=… python tests/exact_models.py [--every N] [--random N] [--quick] [NAME …]

Prints a table: tokenizer, reference, `special` mode, documents, ids and differences; of every N-th
document of the corpora (--quick: under special="plain" alone), and of N random strings and N / 4
that hold added tokens. Exit status 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("SAPHIRA_FUZZ", "1:1")  # the seed of the random strings

import oracles
import pyarrow.parquet as pq
import test_models

from saphira_gpu import Tokenizer

BATCH = 2000


def texts(data: Path, tokenizer: Tokenizer, every: int, n: int) -> Iterator[list[str]]:
    """Lists of texts. every: 0 for none of the corpora."""
    for corpus in test_models.CORPORA if every else ():
        column = pq.read_table(data / "corpora" / f"{corpus}.parquet", columns=["text"])["text"]
        documents = column.to_pylist()[::every]
        for first in range(0, len(documents), BATCH):
            yield documents[first : first + BATCH]
    for first in range(0, n, BATCH):
        yield random_texts(first, min(BATCH, n - first))
    yield test_models.special_texts(tokenizer.spec, n // 4)


def random_texts(first: int, count: int) -> list[str]:
    return [
        *oracles.random_texts(f"exact rules {first}", oracles.RULES, count // 2, 60),
        *oracles.random_unicode(f"exact unicode {first}", count // 4, 40),
        *oracles.random_texts(f"exact ascii {first}", oracles.ASCII, count - 3 * (count // 4), 80),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--random", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(argv)
    data = Path(os.environ["SAPHIRA_TEST_DATA"])
    total = 0
    print("| tokenizer | reference | special | documents | ids | differences |")
    print("|---|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or test_models.NAMES:
            tokenizer = test_models.load(name, data / "vocabs", Path(folder))
            for mode in test_models.modes(name):
                documents = ids = differences = 0
                every = 0 if options.quick and mode != "plain" else options.every
                for some in texts(data, tokenizer, every, options.random):
                    theirs = test_models.expected(data / "vocabs", name, mode, some)
                    ours = test_models.encode(tokenizer, some, mode)
                    documents += len(some)
                    ids += sum(map(len, theirs))
                    differences += sum(a != b for a, b in zip(ours, theirs, strict=True))
                reference = "tokenizers" if test_models.is_hf(name) else "tiktoken"
                row = (name, reference, mode, f"{documents:,}", f"{ids:,}", f"{differences:,}")
                print(f"| {' | '.join(row)} |", flush=True)
                total += differences
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
