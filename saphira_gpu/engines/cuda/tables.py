"""The core's tables on a device, uploaded from the core's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saphira_gpu.devices import Device
from saphira_gpu.engines.cpu import core_table, scheme_number

# sa_scheme_rules, by SA_RULES_*.
_FAMILIES = ("gpt2", "cl100k", "o200k", "deepseek")
_ALPHABETS = ("superatom", "script")
SUPERATOMS, SCRIPTS = 0, 1  # SA_ALPHABET_*


@dataclass(frozen=True, slots=True, eq=False)
class AlphabetTables:
    """A tag alphabet on a device.

    single: uint8[257], tags of the bytes 00..7F, of 80..FF outside characters, of a failed lead.
    four: uint16[5 * 4096], the leaf of code point >> 6. leaves: uint8, 64 tags each.
    """

    single: Any
    four: Any
    leaves: Any

    @classmethod
    def of(cls, device: Device, alphabet: int = SUPERATOMS) -> AlphabetTables:
        """Uploads SA_ALPHABET_*: SUPERATOMS or SCRIPTS."""
        name = f"sa_{_ALPHABETS[alphabet]}"
        single = np.concatenate(
            [
                core_table(f"{name}_ascii", np.uint8),
                core_table(f"{name}_byte", np.uint8)[128:],
                core_table("sa_failed_tags", np.uint8)[alphabet : alphabet + 1],
            ]
        )
        return cls(
            device.to_device(single),
            device.to_device(core_table(f"{name}_four", np.uint16)),
            device.to_device(core_table(f"{name}_leaves", np.uint8)),
        )

    @property
    def arguments(self) -> tuple[Any, Any, Any]:
        return (self.single, self.four, self.leaves)


@dataclass(frozen=True, slots=True, eq=False)
class SchemeTables:
    """A compiled scheme on a device.

    bits: uint8[32], class bits of a superatom (kernels/shared/class_bits.h), which stage remap
    takes as its table too. ascii_bits: uint8[128], the same of an ASCII byte. options: as
    kernels/families.cuh unpacks them. kinds: of runs whose end decides.
    """

    name: str
    kernel: str
    kinds: int
    options: int
    alphabet: AlphabetTables
    bits: Any
    ascii_bits: Any

    @classmethod
    def of(
        cls, device: Device, scheme: str, alphabet: AlphabetTables | None = None
    ) -> SchemeTables:
        """Uploads a scheme. alphabet: its superatoms, where they are on the device already.

        Raises UnsupportedError, naming those there are, for any other name.
        """
        number = scheme_number(scheme)

        def fact(name: str) -> int:
            return int(core_table(f"sa_scheme_{name}", np.uint8)[number])

        family = _FAMILIES[fact("rules")]
        flag = {
            "gpt2": fact("literals"),
            "cl100k": fact("whole_end"),
            "o200k": fact("suffixes"),
            "deepseek": 0,
        }[family]
        remap_rows = core_table("sa_remap_row", np.uint8).size // 32
        han = family == "o200k" and fact("apart") < remap_rows
        return cls(
            name=scheme,
            kernel=f"boundaries_{family}{'_han' if han else ''}",
            kinds={"gpt2": 0, "cl100k": 1, "o200k": 2, "deepseek": 1}[family],
            options=fact("numbers") | flag << 2,
            alphabet=alphabet or AlphabetTables.of(device),
            bits=device.to_device(core_table("sa_scheme_bits", np.uint8).reshape(-1, 32)[number]),
            ascii_bits=device.to_device(
                core_table("sa_scheme_ascii_bits", np.uint8).reshape(-1, 128)[number]
            ),
        )
