"""Where `kernels/` and `tables/` are: inside an installed package, or beside it in a tree."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource(relative: str) -> Path:
    """The path of a data file such as `tables/vocabs/r50k_base.bin`.

    Raises FileNotFoundError, naming both places, if it is in neither.
    """
    import saphira_gpu

    roots = [*map(Path, saphira_gpu.__path__), _PACKAGE, _PACKAGE.parent]
    for root in roots:
        path = root / relative
        if path.exists():
            return path
    raise FileNotFoundError(f"{relative} is neither in {_PACKAGE} nor in {_PACKAGE.parent}")
