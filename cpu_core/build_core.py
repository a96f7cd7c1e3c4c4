"""Write the C source of the cffi module from `include/saphira.h`, the only declarations.

Usage: build_core.py OUT.c
cffi's parser knows no preprocessor: of lines that start with `#`, integer `#define`s are kept.
"""

import re
import sys
from pathlib import Path

import cffi

HEADER = Path(__file__).parent / "include" / "saphira.h"


def declarations(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    kept = []
    for line in text.splitlines():
        if not line.startswith("#"):
            kept.append(line)
        elif re.match(r"#define SA_\w+ \d+$", line.rstrip()):
            kept.append(line.rstrip())
    return "\n".join(kept)


def main(out: str) -> None:
    ffi = cffi.FFI()
    ffi.cdef(declarations(HEADER.read_text()))
    ffi.set_source("saphira_gpu._core", '#include "saphira.h"\n')
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main(sys.argv[1])
