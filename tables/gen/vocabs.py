"""`python -m tables.gen.vocabs RANKFILE...`: writes tables/vocabs/NAME.bin for known rank files.

A rank file is known by its name and must have the sha256 its publisher gives. Needs a built tree:
the compact form's one implementation is the package's.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import sys
from pathlib import Path

from saphira_gpu.loaders import _compact

VOCABS_DIR = Path(__file__).resolve().parent.parent / "vocabs"
PUBLISHED = {
    "r50k_base": "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}


def compact(path: Path) -> bytes:
    """The compact form of a rank file; ValueError if it is not the published one."""
    text = path.read_bytes()
    digest = hashlib.sha256(text).hexdigest()
    if PUBLISHED.get(path.stem) != digest:
        raise ValueError(f"{path} is not a published rank file: its sha256 is {digest}")
    data = _compact.encode([base64.b64decode(line.split()[0]) for line in text.splitlines()])
    if hashlib.sha256(_compact.rank_file(_compact.decode(data))).hexdigest() != digest:
        raise ValueError(f"{path}: ranks are not 0, 1, 2, ... in order")
    return data


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tables.gen.vocabs", description=__doc__)
    parser.add_argument("rank_file", nargs="+", type=Path)
    for path in parser.parse_args(argv).rank_file:
        data = compact(path)
        target = VOCABS_DIR / f"{path.stem}.bin"
        target.write_bytes(data)
        print(f"tables/vocabs/{target.name}: {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
