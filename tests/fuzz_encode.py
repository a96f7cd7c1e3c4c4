"""The core's encoder against the reference for as long as wanted: a differential fuzzer.

    python tests/fuzz_encode.py [--minutes M] [--seed N]

Every round makes a few hundred texts, encodes each once with `saphira_gpu.reference`, and then
columns of them, many times over and in any order, with every instruction set of this machine, every
size of cache from none over those that overflow at once to the default, and one to three threads.
The tokenizers live on from round to round, so that caches fill, are emptied and grow. A first row
of any length moves the others across the chunks of the encoder, and some texts are longer than one.
Prints what it did; exit status 1, with all that is needed to see it again, at the first difference.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence

os.environ.setdefault("SAPHIRA_FUZZ", "1:1")

import oracles
import pyarrow as pa

from saphira_gpu import Tokenizer, reference
from saphira_gpu.engines import cpu
from saphira_gpu.spec import Spec

CHUNK = 8192  # bytes of text between two looks at the cache: SA_CHUNK_BYTES
CACHES = (0, 64 << 10, 100 << 10, 1 << 20, cpu.DEFAULT_CACHE_BYTES)
THREADS = (1, 2, 3)
LONG = (16, 44, 45, 64, 65, 192, 193, 255, 256, 300, 1000)  # bytes of tokens that nothing merges to


def small(rng: random.Random) -> Spec:
    """A tokenizer of few merges over few letters, in any order: some are never reached, some make
    pairs of lower rank."""
    merges = oracles.random_merges(rng, "ab é".encode(), 40, 19)
    whole = rng.random() < 0.3
    extra = [b"e" * n for n in LONG] if whole else ()
    return oracles.small_spec(merges, whole_piece_first=whole, extra=extra)


def texts(rng: random.Random) -> list[bytes]:
    """Different texts: of rules' characters, any Unicode, any bytes, few letters, long ones."""
    made: list[bytes] = []
    for _ in range(60):
        kind = rng.randrange(6)
        n = rng.choice((1, 3, 10, 40, 120))
        if kind == 0:
            made.append("".join(rng.choices(oracles.RULES, k=n)).encode())
        elif kind == 1:
            made.append("".join(rng.choices(oracles.ASCII, k=n)).encode())
        elif kind == 2:
            made.append(rng.randbytes(n))
        elif kind == 3:
            made.append("".join(rng.choices("ab é", k=n)).encode())
        elif kind == 4:
            made.append(b" " * rng.randrange(2) + b"e" * (rng.choice(LONG) + rng.randrange(2)))
        else:
            words = ["".join(rng.choices("etaoin", k=rng.randint(1, 20))) for _ in range(9)]
            made.append(" ".join(rng.choices(words, k=1 + n // 4)).encode())
    joined = b"".join(rng.choices(made, k=400))
    for _ in range(2):
        first = rng.randrange(64)
        made.append(joined[first : first + CHUNK + rng.randint(-70, 70)])
    made.append(rng.choice((b"a", b" ", b"7", b"\n", b"\xc3\xa9", b"ab")) * rng.randint(1, 5000))
    return [*made, b""]


def one_round(rng: random.Random, models: Sequence[tuple[Spec, Sequence[Tokenizer]]]) -> int:
    """Encodes some columns with one of the models. Returns the bytes that were compared.

    Raises AssertionError at a difference.
    """
    spec, tokenizers = rng.choice(models)
    different = texts(rng)
    expected = [reference.encode(spec, text) for text in different]
    compared = 0
    for isa in cpu.isas():
        cpu.select_isa(isa)
        for tokenizer in tokenizers:
            first = rng.randrange(CHUNK + 128)
            order = [rng.randrange(len(different)) for _ in range(rng.choice((20, 400, 3000)))]
            rows = [b" " * first, *(different[i] for i in order)]
            column = pa.array(rows, pa.large_binary())[1 if rng.random() < 0.5 else 0 :]
            threads = rng.choice(THREADS)
            found = tokenizer.encode_arrow(column, threads=threads).to_pylist()[-len(order) :]
            for i, ids in zip(order, found, strict=True):
                if ids != expected[i]:
                    raise AssertionError(
                        f"{spec.name}, {isa}, {tokenizer._cache_bytes} bytes of cache, "
                        f"{threads} threads, first row {first}: {different[i]!r}\n"
                        f"reference {expected[i]}\ncore      {ids}"
                    )
            compared += sum(map(len, rows))
    return compared


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args(argv)
    rng = random.Random(options.seed)
    specs = [Tokenizer.load(name).spec for name in ("gpt2", "cl100k_base", "o200k_base")]
    specs += [small(rng) for _ in range(5)]
    models = [(spec, [Tokenizer.from_spec(spec, cache_bytes=n) for n in CACHES]) for spec in specs]
    started, rounds, compared = time.monotonic(), 0, 0
    print(f"seed {options.seed}, instruction sets {', '.join(cpu.isas())}", flush=True)
    while time.monotonic() - started < 60 * options.minutes:
        try:
            compared += one_round(rng, models)
        except AssertionError as error:
            print(f"round {rounds} of seed {options.seed}: {error}")
            return 1
        rounds += 1
    minutes = (time.monotonic() - started) / 60
    print(f"{minutes:.1f} minutes, {rounds} rounds, {compared:,} bytes compared, 0 differences")
    return 0


if __name__ == "__main__":
    sys.exit(main())
