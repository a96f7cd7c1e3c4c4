"""`saphira-gpu stages --pretokenizer`: what each step made of a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pretokenizers import SCRIPTS, byte_level, digits, needs_oniguruma, sequence, split
from typer.testing import CliRunner

from saphira_gpu import reference_pretok
from saphira_gpu.cli import app


def stages(folder: Path, config: Any, *arguments: str) -> Any:
    path = folder / "config.json"
    path.write_text(json.dumps(config), "utf-8")
    return CliRunner().invoke(app, ["stages", "--pretokenizer", str(path), *arguments])


def lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines() if line.strip()]


def test_steps_under_the_text(tmp_path: Path) -> None:
    config = sequence(digits(True), byte_level(True))
    shown = stages(tmp_path, config, "It's é12", "--reference")
    assert shown.exit_code == 0
    found = lines(shown.stdout)
    assert found[0] == ["characters", *"It's␣é12"]
    assert found[1][:4] == ["bytes", "49", "74", "27"]
    assert found[3] == ["1", "Classes", *"OOOOOONN"]
    assert found[4] == ["pieces", "|", "|", "|"]
    assert found[7] == ["3", "Scheme", "L", "L", "AP", "L", "SP", "L", "N", "N"]
    assert found[-2] == ["pieces", "ĠIt", "'s", "ĠÃ©", "Ġ1", "Ġ2"]
    assert found[-1] == ["the", "reference", "agrees"]


def test_characters_in_no_piece(tmp_path: Path) -> None:
    shown = stages(tmp_path, SCRIPTS, "  aж")
    marks = next(line for line in shown.stdout.splitlines() if line.startswith("  pieces"))
    assert marks.split() == ["pieces", "x", "x", "|", "|"]


def test_difference_is_exit_code_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_pretok, "pieces", lambda steps, text: [])
    shown = stages(tmp_path, SCRIPTS, "a", "--reference")
    assert shown.exit_code == 1 and "the reference differs" in shown.stdout


@needs_oniguruma
def test_some_patterns_have_no_reference(tmp_path: Path) -> None:
    assert stages(tmp_path, split("a.c"), "xabcx").exit_code == 0
    shown = stages(tmp_path, split("a.c"), "xabcx", "--reference")
    assert shown.exit_code == 1 and "does not read '.'" in shown.stderr


def test_bad_configurations(tmp_path: Path) -> None:
    shown = stages(tmp_path, {"type": "Digits"}, "a")
    assert shown.exit_code == 1 and "individual_digits is missing" in shown.stderr
    shown = stages(tmp_path, split("a.c"), "a", "--engine", "tiktoken")
    assert shown.exit_code == 1 and "engine 'tiktoken'" in shown.stderr
    gone = CliRunner().invoke(app, ["stages", "--pretokenizer", str(tmp_path / "no.json"), "a"])
    assert gone.exit_code == 1 and "no.json: No such file" in gone.stderr
