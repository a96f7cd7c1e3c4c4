"""How much text goes to a device at a time, and what of its memory that takes."""

from __future__ import annotations

from dataclasses import dataclass

from saphira_gpu.devices import Device, DeviceMemoryError

# Positions in a batch are uint32, with 64 bytes to spare behind the text.
MOST_BYTES = (1 << 32) - 128
# More text than this in one batch gains nothing: the copies in and out overlap with other batches.
_USEFUL_BYTES = 256 << 20
# Device memory of a batch in flight, all of it alive at once: for each byte of text bitmaps,
# positions, values and ids at their bounds; for each row its offsets, in and out, and marks.
PER_BYTE = 48
PER_ROW = 64
PER_BATCH = 4 << 20
# Batches in flight: one copied in, one in the kernels, one copied out. Only text, offsets and ids
# of the other two are alive, so that two batches' worth of memory hold all three.
_IN_FLIGHT = 2
# Share of a device's free memory that is used where no `device_memory` says how much.
_DEFAULT_SHARE = 0.8
# On a device that doesn't say how much is free.
_DEFAULT_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bounds of one batch: bytes of text and rows. A batch has one row at least."""

    bytes: int
    rows: int

    def halved(self, n_bytes: int, n_rows: int) -> Sizes:
        """Bounds after a batch of this size found no room."""
        return Sizes(max(min(self.bytes, n_bytes) // 2, 1), max(min(self.rows, n_rows) // 2, 1))


def budget(device: Device, device_memory: int | None) -> int:
    """Bytes of device memory that an engine may use: as asked, else most of what is free."""
    if device_memory is not None:
        return device_memory
    use = device.memory()
    return use.used + int(use.free * _DEFAULT_SHARE) if use.free is not None else _DEFAULT_BYTES


def sizes(total: int, resident: int) -> Sizes:
    """What a batch may have under a bound of `total` bytes, of which tables take `resident`.

    Raises DeviceMemoryError where that leaves no room to work in.
    """
    room = (total - resident) // _IN_FLIGHT - PER_BATCH
    if room <= 0:
        need = resident + _IN_FLIGHT * PER_BATCH
        raise DeviceMemoryError(
            f"device_memory={total} is too little: tables take {resident} bytes, and a batch needs "
            f"room; at least {need} bytes"
        )
    # Half of it for text and half for rows, so that any mixture of both fits.
    n_bytes = min(room // (2 * PER_BYTE), _USEFUL_BYTES, MOST_BYTES)
    return Sizes(max(n_bytes, 1), max(room // (2 * PER_ROW), 1))
