"""Any bytes: the compiled core against the oracle, under the byte contract."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import oracles
import pytest
from hypothesis import strategies as st

from saphira_gpu import Tokenizer, reference
from saphira_gpu.engines import cpu
from saphira_gpu.stages import Stages


def ids_of(tokenizer: Tokenizer, rows: list[bytes]) -> list[list[int]]:
    tokens = tokenizer.encode_batch(rows)
    offsets, ids = tokens.offsets.tolist(), tokens.ids.tolist()
    return [ids[start:end] for start, end in itertools.pairwise(offsets)]


def spans_of(stages: Stages) -> list[tuple[int, int]]:
    return [span for segment in stages.segments for span in segment.pieces]


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (b"\xff", [187]),
        (b"\xc3\xa9", [2634]),
        (b"\xc3", [127]),
        (b"a\x80", [64, 222]),
        (b"a\xe4\xb8b", [64, 10310, 65]),
        (b" \xc0\xa0a", [220, 124, 254, 64]),
        (b"'\xc1\xb3", [6, 125, 111]),
    ],
)
def test_ids_by_hand(isa: str, gpt2: Tokenizer, data: bytes, ids: list[int]) -> None:
    assert reference.encode(gpt2.spec, data) == ids
    assert gpt2.encode(data).tolist() == ids


def test_every_length(isa: str, gpt2: Tokenizer) -> None:
    """Random bytes of every length 0..200, each a row of its own and all in one batch."""
    rows = []
    for length in range(201):
        source = oracles.rng(f"length {length}")
        rows.append(bytes(source.choices(range(256), k=length)))
        rows.append(bytes(source.choices(oracles.EDGE_BYTES, k=length)))
    for row, ids in zip(rows, ids_of(gpt2, rows), strict=True):
        assert ids == reference.encode(gpt2.spec, row), row
        assert gpt2.encode(row).tolist() == ids, row


def test_short_strings_of_edge_bytes(isa: str, gpt2: Tokenizer) -> None:
    """All strings of one and two bytes that make or break UTF-8, and a sample of three and four,
    bare and where they cross the edge of a block of 64 bytes."""
    source = oracles.rng("edge")
    edge = oracles.EDGE_BYTES
    cores = [bytes(parts) for n in (1, 2) for parts in itertools.product(edge, repeat=n)]
    cores += [bytes(source.choices(edge, k=3 + i % 2)) for i in range(10 * oracles.FUZZ_SIZE)]
    rows = []
    for i, core in enumerate(cores):
        rows += [core, b"x " * 30 + b"yz"[: i % 3] + core + b" it's"]
    for row, ids in zip(rows, ids_of(gpt2, rows), strict=True):
        assert ids == reference.encode(gpt2.spec, row), row


def test_random_rows(isa: str, gpt2: Tokenizer) -> None:
    rows = oracles.random_bytes("rows", 4 * oracles.FUZZ_SIZE, 150)
    for row, ids in zip(rows, ids_of(gpt2, rows), strict=True):
        assert ids == reference.encode(gpt2.spec, row), row


@oracles.fuzz(st.lists(oracles.any_bytes, max_size=4))
def test_any_bytes(rows: list[bytes]) -> None:
    gpt2 = gpt2_once()
    expected = [reference.encode(gpt2.spec, row) for row in rows]
    before = cpu.isa()
    try:
        for isa in cpu.isas():
            cpu.select_isa(isa)
            assert ids_of(gpt2, rows) == expected, isa
    finally:
        cpu.select_isa(before)


_made: list[Tokenizer] = []


def gpt2_once() -> Tokenizer:
    if not _made:
        _made.append(Tokenizer.load("gpt2"))
    return _made[0]


def test_stages_equal_the_oracle(isa: str, gpt2: Tokenizer) -> None:
    """Not the ids alone: every stage, so that a disagreement names its place."""
    rows = oracles.random_bytes("stages", oracles.FUZZ_SIZE, 100)
    texts = oracles.random_texts("stages", oracles.RULES, oracles.FUZZ_SIZE, 40)
    rows += [text.encode() for text in texts]
    rows.append(b"a<|endoftext|>b\xe9<|endoftext|>")
    for row in rows:
        for ours, theirs in zip(
            gpt2.stages(row, special="parse").segments,
            reference.stages(gpt2.spec, row, "parse"),
            strict=True,
        ):
            for name in ("start", "end", "added", "normalized", "symbols"):
                assert getattr(ours, name) == getattr(theirs, name), (row, name)
            for name in ("chars", "pieces", "ids"):
                assert [*getattr(ours, name)] == [*getattr(theirs, name)], (row, name)
            assert [*map(list, ours.tokens)] == [*map(list, theirs.tokens)], row


def test_cases_of_the_byte_contract(isa: str, gpt2: Tokenizer, test_data: Path) -> None:
    cases = json.loads((test_data / "cases/byte_contract_cases.json").read_text())
    for case in cases:
        data = bytes.fromhex(case["hex"])
        found = [data[start:end].hex() for start, end in spans_of(gpt2.stages(data))]
        assert found == case["expected_r50k_spans"], case
    assert len(cases) == 39


@oracles.fuzz(oracles.any_bytes)
def test_policies_for_invalid_rows(data: bytes) -> None:
    """`replace` is Python's; `contract` keeps every byte; `null` is null; `error` names the row."""
    gpt2 = gpt2_once()
    rows = [b"ok", data, None]
    replaced = data.decode("utf-8", "replace")
    assert ids_of(gpt2, [data]) == [reference.encode(gpt2.spec, data)]
    found = gpt2.encode_batch(rows, invalid="replace")
    assert found.ids.tolist() == [*gpt2.encode("ok"), *gpt2.encode(replaced)]
    valid = data == replaced.encode()
    found = gpt2.encode_batch(rows, invalid="null")
    assert found.ids.tolist() == [*gpt2.encode("ok"), *(gpt2.encode(data) if valid else [])]
    if not valid:
        with pytest.raises(ValueError, match="row 1"):
            gpt2.encode_batch(rows, invalid="error")
