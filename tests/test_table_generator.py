"""`python -m tables.gen`: what it refuses and what `--check` finds."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from definitions import (
    ROOT,
    UNICODE,
)


def run_check(folder: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tables.gen", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of tables/ that a test may damage, if it mends it afterwards."""
    folder = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "vocabs")
    shutil.copytree(ROOT / "tables", folder / "tables", ignore=ignore)
    return folder


def test_generated_files_are_up_to_date() -> None:
    status, output = run_check(ROOT, "--check")
    assert status == 0, output


def test_check_names_what_differs(copy: Path) -> None:
    folder = copy / "tables/generated"
    changed, gone, extra = folder / "superatoms.h", folder / "scripts.tsv", folder / "old.h"
    before = changed.read_text(), gone.read_text()
    changed.write_text(before[0].replace("10,", "11,", 1))
    gone.unlink()
    extra.write_text("")
    status, output = run_check(copy, "--check")
    assert status == 1
    for path in (changed, gone, extra):
        assert f"tables/generated/{path.name}" in output
    assert "3 wrong" in output
    # Writing mends what it writes; the file nobody generates stays, and --check still names it.
    assert run_check(copy)[0] == 0
    assert (changed.read_text(), gone.read_text()) == before
    status, output = run_check(copy, "--check")
    assert status == 1 and "1 wrong" in output
    extra.unlink()
    assert run_check(copy, "--check")[0] == 0


def test_range_data_is_pinned(copy: Path) -> None:
    path = copy / "tables/unicode/ucd-16.0.0.tsv"
    before = path.read_text()
    path.write_text(before.replace("\t65\t90\n", "\t65\t91\n", 1))
    try:
        status, output = run_check(copy, "--check")
    finally:
        path.write_text(before)
    assert status == 1 and "ucd-16.0.0.tsv" in output and "sha256" in output


def test_every_range_file_is_listed() -> None:
    lines = (UNICODE / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in UNICODE.glob("*.tsv")
    }
    assert listed == files


def test_another_profile_is_data(copy: Path) -> None:
    path = copy / "tables/schemes.toml"
    before = path.read_text()
    versions = "".join(f'{key} = "17.0.0"\n' for key in ("regex", "numeric", "norm", "scripts"))
    path.write_text(
        f'{before}\n[profiles.next]\n{versions}punct = "8.0.0"\n'
        f'[profiles.unfit]\n{versions}punct = "17.0.0"\n'
    )
    try:
        status, output = run_check(copy, "--profile", "next", "--check")
        assert status == 1 and "superatoms.tsv differs" in output and "scripts.tsv" in output
        # Punctuation that is also Han is no superatom: said, not guessed.
        status, output = run_check(copy, "--profile", "unfit", "--check")
        assert status == 1 and "U+16FE2 of unfit: no superatom is ['P', 'punct', 'han']" in output
        status, output = run_check(copy, "--profile", "none", "--check")
        assert status == 1 and "no profile 'none'" in output
    finally:
        path.write_text(before)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('AP = ["Apostrophe"]', 'AP = ["Apostroph"]', "remap cl100k.AP: no atom 'Apostroph'"),
        ('AP = ["Apostrophe"]', 'AP = ["Space"]', "remap cl100k.AP: no atom 'Space'"),
        ('AP = ["Apostrophe"]', 'Q = ["Apostrophe"]', "remap cl100k: no class 'Q'"),
        ('\nby = "atom"', '\nby = "code point"', "remap cl100k: by = 'code point'"),
        ('remap = "gpt2"', 'remap = "gpt3"', "scheme gpt2: no remap row 'gpt3'"),
        ('behavior = "Isolated"', 'behavior = "isolated"', "scheme gpt2: no behavior 'isolated'"),
        ("invert = false", "", "scheme gpt2: its keys are not"),
    ],
)
def test_mistakes_in_schemes_are_named(copy: Path, before: str, after: str, message: str) -> None:
    path = copy / "tables/schemes.toml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    try:
        status, output = run_check(copy, "--check")
    finally:
        path.write_text(text)
    assert status == 1 and output.startswith(message), output
