"""Options and fixtures of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ISAS = ("scalar", "avx2", "avx512", "neon")  # SA_ISA_* of saphira.h, in order


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long versions of the tests too")


def pytest_configure(config: pytest.Config) -> None:
    # Read by tests/oracles.py when the test modules are imported, in this process and its workers.
    os.environ.setdefault("SAPHIRA_FUZZ", "1:1500" if config.getoption("--long") else "1:150")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="long: run with --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        report.sections.append(("random tests", f"SAPHIRA_FUZZ={os.environ['SAPHIRA_FUZZ']}"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "isa" in metafunc.fixturenames:
        metafunc.parametrize("isa", available_isas(), indirect=True)


def available_isas() -> list[str]:
    """Names of the instruction sets that the core holds and this processor runs."""
    try:
        from saphira_gpu._core import lib
    except ImportError:
        return ["scalar"]  # the test itself then fails, and says that the core was never built
    return [name for number, name in enumerate(ISAS) if lib.sa_isa_available(number)]


@pytest.fixture
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once on every instruction set; its value is the name."""
    from saphira_gpu._core import lib

    before = lib.sa_isa_active()
    assert lib.sa_isa_select(ISAS.index(request.param)) == 0
    yield request.param
    assert lib.sa_isa_select(before) == 0


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of cases, vocabularies and corpora that are not part of the project."""
    folder = os.environ.get("SAPHIRA_TEST_DATA")
    if not folder:
        pytest.skip("SAPHIRA_TEST_DATA is not set")
    if not Path(folder).is_dir():
        pytest.fail(f"SAPHIRA_TEST_DATA={folder} is not a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def gpt2():  # type: ignore[no-untyped-def]
    """The embedded GPT-2 tokenizer."""
    import saphira_gpu

    return saphira_gpu.Tokenizer.load("gpt2")
