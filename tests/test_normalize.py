"""Stage normalize of the core: against HF's normalizers, and against the reference on any bytes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest
from oracles import FUZZ_SIZE, WHITE_SPACE, byte_positions, random_bytes, random_texts, rng
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from saphira_gpu import reference, reference_normalize
from saphira_gpu._resources import resource
from saphira_gpu.normalizers import Program
from saphira_gpu.spec import Bpe, Normalizer, Pretok, Spec

FORMS = {
    "nfc": normalizers.NFC(),
    "nfd": normalizers.NFD(),
    "nfkc": normalizers.NFKC(),
    "nfkd": normalizers.NFKD(),
    "lowercase": normalizers.Lowercase(),
}
SCALARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
LONG = pytest.param("long", marks=pytest.mark.long)
SIZE = ["short", LONG]


def rows(name: str) -> Iterator[list[str]]:
    for line in resource(f"tables/unicode/{name}").read_text("ascii").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")


DATA = [(chr(int(row[0], 16)), *row[1:]) for row in rows("normalization-9.0.0.tsv")]
CASED = [chr(int(row[0], 16)) for row in rows("lowercase-17.0.0.tsv")]
MARKS = [row[0] for row in DATA if row[1] != "0"]
DECOMPOSING = [row[0] for row in DATA if row[3]]
EXCLUDED = [row[0] for row in DATA if row[4] == "0" and not row[2]]
PARTS = sorted({chr(int(p, 16)) for row in DATA if not row[2] for p in row[3].split()})
JAMO = [chr(c) for c in [*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xD7B0, 0xD800)]]
SYLLABLES = [chr(c) for c in range(0xAC00, 0xD7A4)]
PLAIN = [*map(chr, range(32, 127)), *"éÀßĲ\u0130\u212b\u2126ﬁ中か\U0001f600"]
SPACES = sorted(WHITE_SPACE)
POOLS = [MARKS, DECOMPOSING, EXCLUDED, PARTS, JAMO, SYLLABLES, PLAIN, SPACES, CASED]
POOLS += [["a", "\u0301", "\u0323", "\u0327", "\u0316", "\u1100", "\u1161", "\u11a8", "\uac00"]]


def mixed(name: str, count: int, longest: int = 12) -> list[str]:
    """Strings of characters that normalization is about; every other one keeps to two kinds."""
    source = rng(name)
    made = []
    for i in range(count):
        pools = source.choices(POOLS, k=2) if i % 2 else POOLS
        length = source.randint(0, longest)
        made.append("".join(source.choice(source.choice(pools)) for _ in range(length)))
    return made


def program(*steps: Normalizer) -> Program:
    return Program(steps)


def same_as_hf(form: str, texts: list[str], between: str = "\n") -> int:
    """Compares all texts in one call: a newline has no part in any form. Returns how many."""
    whole = between.join(texts)
    got, expected = program(Normalizer(form)).normalize_str(whole), FORMS[form].normalize_str(whole)
    if got != expected:
        pairs = zip(got.split(between), expected.split(between), texts, strict=False)
        at = next(i for i, (a, b, _) in enumerate(pairs) if a != b)
        raise AssertionError(
            f"{form} of {texts[at]!a}: {got.split(between)[at]!a}, "
            f"HF {expected.split(between)[at]!a}"
        )
    return len(texts)


# ---- the forms and lower case ----


@pytest.mark.parametrize("form", FORMS)
def test_every_code_point(form: str) -> None:
    count = same_as_hf(form, [c for c in SCALARS if c != "\n"])
    assert count == 0x110000 - 0x800 - 1


@pytest.mark.parametrize("size", SIZE)
@pytest.mark.parametrize("form", FORMS)
def test_code_points_in_context(form: str, size: str) -> None:
    chars = SCALARS if size == "long" else sorted({*PARTS, *DECOMPOSING, *MARKS, *CASED, *JAMO})
    for before, after in [("a", ""), ("", "\u0301"), ("\u0327", "\u0323"), ("e\u0306", "\u0316")]:
        same_as_hf(form, [before + c + after for c in chars if c != "\n"])
    for before, after in [("\u1100", ""), ("\u1100\u1161", "\u11a8"), ("\u0915", "\u093c")]:
        same_as_hf(form, [before + c + after for c in chars if c != "\n"])


@pytest.mark.parametrize("size", SIZE)
def test_random_text(size: str) -> None:
    texts = mixed("forms", 1_000_000 if size == "long" else 100_000)
    texts = [text.replace("\n", " ") for text in texts]
    for form in FORMS:
        assert same_as_hf(form, texts) == len(texts)


@pytest.mark.parametrize("form", FORMS)
def test_every_pair_that_composes(form: str) -> None:
    marks = sorted({row[0] for row in DATA if row[1] != "0"}, key=ord)
    middle = ["", "\u0334", "\u0323", "\u0301", "\u3099", "b"]
    pairs = [tuple(chr(int(p, 16)) for p in r[3].split()) for r in DATA if not r[2] and " " in r[3]]
    texts = [a + m + b for a, b in pairs for m in middle]
    texts += [a + b + mark for a, b in pairs for mark in marks[::40]]
    assert same_as_hf(form, texts) == len(texts)


def test_quick_is_right_and_rarely_unsure() -> None:
    """True only for text that stays, and False for text that stays in few rows."""
    texts = mixed("quick", 20_000, longest=8)
    for form, hf in FORMS.items():
        quick = program(Normalizer(form)).quick
        stays = [(text, hf.normalize_str(text) == text) for text in texts]
        wrong = [ascii(text) for text, same in stays if quick(text) and not same]
        assert not wrong, (form, wrong[:3])
        unsure = sum(same and not quick(text) for text, same in stays)
        assert unsure <= len(texts) // 100, (form, unsure)
        assert sum(same for _, same in stays) > 1000


@pytest.mark.parametrize("length", range(0, 70, 3))
def test_quick_at_every_distance(length: int) -> None:
    """One character that changes, anywhere in text that does not."""
    for form, char in [("nfc", "\u212b"), ("nfd", "é"), ("nfkd", "²"), ("lowercase", "A")]:
        checked = program(Normalizer(form))
        for at in range(length + 1):
            text = "x" * at + char + "y" * (length - at)
            assert not checked.quick(text)
            assert checked.normalize_str(text) == FORMS[form].normalize_str(text)
        assert checked.quick("x" * length)
    assert program(Normalizer("nfc")).quick("é" * length)
    assert not program(Normalizer("nfc")).quick("é" * length + "e\u0301")
    assert program(Normalizer("nfc")).quick("é" * length + "q\u0301")


# ---- the other steps, sequences and alignments ----

STEPS = [Normalizer(kind) for kind in (*FORMS, "strip_left", "strip_right")]
STEPS += [
    Normalizer("replace", "a", "bé"),
    Normalizer("replace", "é", ""),
    Normalizer("replace", " ", "\u2581"),
    Normalizer("replace", "``", '"'),
    Normalizer("replace", "aa", "aa"),
    Normalizer("replace", ".*+\n#&~-", "$0"),
    Normalizer("replace_spaces", content=" "),
    Normalizer("replace_spaces", content="  "),
    Normalizer("replace_spaces", content=""),
    Normalizer("prepend", content="\u2581"),
    Normalizer("prepend", content="xyé"),
]


def hf_step(step: Normalizer) -> normalizers.Normalizer:
    if step.kind in FORMS:
        return FORMS[step.kind]
    if step.kind == "replace":
        return normalizers.Replace(step.pattern, step.content)
    if step.kind == "replace_spaces":
        return normalizers.Replace(Regex(r"\s+"), step.content)
    if step.kind == "prepend":
        return normalizers.Prepend(step.content)
    return normalizers.Strip(left=step.kind == "strip_left", right=step.kind == "strip_right")


def hf_aligned(steps: Iterable[Normalizer]) -> Tokenizer:
    """A tokenizer with one token a character, so that its offsets are those of the characters."""
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("(?m)."), "isolated")
    tokenizer.normalizer = normalizers.Sequence([hf_step(step) for step in steps])
    return tokenizer


def char_offsets(text: str, steps: Program) -> tuple[str, list[tuple[int, int]]]:
    data, spans = steps.align(text)
    chars = {byte: char for char, byte in enumerate(byte_positions(text))}
    offsets = []
    at = 0
    for char in data.decode():
        end = at + len(char.encode())
        offsets.append((chars[int(spans[at, 0])], chars[int(spans[end - 1, 1])]))
        at = end
    return data.decode(), offsets


@pytest.mark.parametrize("size", SIZE)
def test_steps_and_offsets(size: str) -> None:
    source = rng("steps")
    texts = mixed("steps", 60_000 if size == "long" else 6000)
    texts += random_texts("ascii steps", "aab ` \t\n.*+#&~-é\u0301", 2000, 20)
    for i, text in enumerate(texts):
        if i % 10 == 0:
            steps = source.choices(STEPS, k=source.randint(1, 4))
            mine, hf = program(*steps), hf_aligned(steps)
        expected = hf.normalizer.normalize_str(text), hf.encode(text).offsets
        assert char_offsets(text, mine) == expected, (steps, ascii(text))
        assert not mine.quick(text) or expected[0] == text


def test_offsets_of_composed_and_added_characters() -> None:
    nfc, nfd = program(Normalizer("nfc")), program(Normalizer("nfd"))
    text = "x\u1100\u1161\u11a8e\u0301"  # the span of a composed character is that of the first
    assert char_offsets(text, nfc) == ("x각é", [(0, 1), (1, 2), (4, 5)])
    assert char_offsets("각", nfd) == ("\u1100\u1161\u11a8", [(0, 1)] * 3)
    upper = program(Normalizer("lowercase"))
    assert char_offsets("\u0130b", upper) == ("i\u0307b", [(0, 1), (0, 1), (1, 2)])
    spaces = program(Normalizer("replace_spaces", content=" "))
    assert char_offsets("a \t b", spaces) == ("a b", [(0, 1), (3, 4), (4, 5)])
    prepend = program(Normalizer("prepend", content="__"))
    assert char_offsets("ab", prepend) == ("__ab", [(0, 1), (0, 1), (0, 1), (1, 2)])
    assert char_offsets("", prepend) == ("", [])


def test_white_space_is_all_25() -> None:
    spaces = program(Normalizer("replace_spaces", content="_"))
    strip = program(Normalizer("strip_left"), Normalizer("strip_right"))
    for char in SCALARS:
        if ord(char) < 0x4000:
            white = char in WHITE_SPACE
            assert spaces.normalize_str(f"a{char}{char}b") == ("a_b" if white else f"a{char * 2}b")
            assert strip.normalize_str(f"{char}b{char}") == ("b" if white else f"{char}b{char}")
    assert spaces.quick("".join(c for c in SCALARS if c not in WHITE_SPACE))


@pytest.mark.parametrize("length", [0, 1, 7, 31, 32, 33, 64, 65, 100])
def test_single_spaces_are_left(length: int) -> None:
    spaces = program(Normalizer("replace_spaces", content=" "))
    words = ("ab " * length)[:length]
    assert spaces.quick(words)
    for gap in ("  ", "\n", " \n", "\t ", " \u3000", "\u00a0"):
        for at in range(len(words) + 1):
            text = words[:at] + gap + words[at:]
            expected = normalizers.Replace(Regex(r"\s+"), " ").normalize_str(text)
            assert spaces.normalize_str(text) == expected
            assert not spaces.quick(text) or text == expected


# ---- bytes that are not UTF-8 ----


def spec_of(steps: Iterable[Normalizer]) -> Spec:
    return Spec((), Pretok("gpt2"), Bpe((), ()), normalizers=tuple(steps))


def broken(name: str, count: int) -> list[bytes]:
    """Text with bytes changed, taken out and put in, and random bytes."""
    source = rng(name)
    made = random_bytes(name, count // 2, 24)
    for text in mixed(name, count - len(made)):
        data = bytearray(text.encode())
        for _ in range(source.randint(1, 3)):
            at = source.randint(0, len(data))
            data[at : at + source.randint(0, 1)] = random_bytes(f"{name} {at}", 2, 2)[1]
        made.append(bytes(data))
    return made


def test_any_bytes_as_the_reference() -> None:
    source = rng("any bytes")
    for data in broken("any bytes", 40 * FUZZ_SIZE):
        steps = source.choices(STEPS, k=source.randint(1, 3))
        assert program(*steps).normalize(data) == reference.normalize(spec_of(steps), data), (
            steps,
            data,
        )


@pytest.mark.parametrize("form", FORMS)
def test_runs_of_valid_text_are_apart(form: str) -> None:
    """An invalid byte passes through; the text on its two sides is normalized by itself."""
    checked = program(Normalizer(form))
    runs = mixed(f"runs {form}", 2000)
    invalid = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"]
    for i, (left, right) in enumerate(zip(runs, reversed(runs), strict=True)):
        bad = invalid[i % len(invalid)]
        expected = bad.join(FORMS[form].normalize_str(run).encode() for run in (left, right))
        assert checked.normalize(left.encode() + bad + right.encode()) == expected
        data, spans = checked.align(left.encode() + bad + right.encode())
        assert data == expected
        ahead, behind = checked.align(left)[1], checked.align(right)[1]
        assert spans[: len(ahead)].tolist() == ahead.tolist()
        shift = len(left.encode()) + len(bad)
        assert spans[len(data) - len(behind) :].tolist() == (behind + shift).tolist()
        for at in range(len(ahead), len(ahead) + len(bad)):
            start, end = spans[at].tolist()
            assert start <= len(left.encode()) + at - len(ahead) < end


def test_reference_as_hf() -> None:
    """The reference, whose tables and algorithm are its own, on text and offsets."""
    source = rng("reference")
    for text in mixed("reference", 15 * FUZZ_SIZE):
        steps = source.choices(STEPS, k=source.randint(1, 3))
        data, spans = reference.align(spec_of(steps), text.encode())
        assert data.decode() == hf_aligned(steps).normalizer.normalize_str(text)
        assert [list(span) for span in spans] == program(*steps).align(text)[1].tolist()
    assert reference_normalize.WHITE == WHITE_SPACE


# ---- hostile ----


def by_class(text: str) -> str:
    classes = {row[0]: int(row[1]) for row in DATA}
    return "".join(sorted(text, key=lambda char: classes.get(char, 0)))


@pytest.mark.parametrize("form", ["nfc", "nfd", "nfkc", "nfkd"])
def test_a_megabyte_of_marks_takes_no_time(form: str) -> None:
    marks = ["\u0316", "\u0334", "\u20d0", "\u0f39", "\u0345", "\u0e48"]
    some = "".join(rng("marks").choices(marks, k=400_000))
    texts = {
        "q" + some: "q" + by_class(some),
        some: by_class(some),
        "q" + "\u20d0" * 250_000 + "\u0316" * 250_000: "q"
        + "\u0316" * 250_000
        + "\u20d0" * 250_000,
        "\u1100" * 350_000: "\u1100" * 350_000,
        "\u1161" * 350_000: "\u1161" * 350_000,
        ("q" + "\u20d0\u0316" * 9) * 30_000: ("q" + "\u0316" * 9 + "\u20d0" * 9) * 30_000,
    }
    checked = program(Normalizer(form))
    for text, expected in texts.items():
        start = time.perf_counter()
        made, spans = checked.align(text)
        checked.quick(text)
        taken = time.perf_counter() - start
        assert made.decode() == expected
        assert len(spans) == len(made)
        assert taken < 1, f"{taken:.1f} s for {len(made)} bytes of {form}"


def test_the_longest_decomposition_many_times() -> None:
    text = "\ufdfa" * 100_000  # one character becomes 18
    made = program(Normalizer("nfkd")).normalize_str(text)
    assert made == FORMS["nfkd"].normalize_str("\ufdfa") * 100_000


def test_long_literals_take_no_time() -> None:
    step = Normalizer("replace", "a" * 500 + "b", "c")
    text = "a" * 1_000_000
    start = time.perf_counter()
    assert program(step).normalize_str(text) == text
    assert program(step).normalize_str(text + "b") == "a" * (len(text) - 500) + "c"
    assert time.perf_counter() - start < 1
