"""One output file that appears under its own name only when it is whole.

It is written as `.NAME.tmp-PID` in the folder it belongs to, then closed, flushed to the disk and
renamed, and the folder is flushed too. The writer holds a lock (flock) on its temporary file, which
the system drops when the process ends in whatever way: a temporary file for the same target that
can be locked belongs to a dead run and is removed. Neither its name nor its suffix lets it pass for
Parquet data.
"""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from saphira_gpu.errors import InputError

ROW_GROUP_BYTES = 8 << 20
TEMPORARY = re.compile(r"\.(?P<name>.+)\.tmp-\d+", re.DOTALL)


class AtomicParquet:
    """Context manager around a Parquet file: `write` batches; a clean exit makes it appear, an
    exception removes it and the folders that were made for it.

    schema: pyarrow.Schema of the batches. overwrite: whether a target that exists by then is
    replaced; else InputError is raised and it stays. Raises OSError as the file system does.
    """

    def __init__(self, target: Path, schema: pa.Schema, overwrite: bool) -> None:
        self.target = target
        self.schema = schema
        self.overwrite = overwrite
        self.temporary = target.with_name(f".{target.name}.tmp-{os.getpid()}")
        self._made: list[Path] = []
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0

    def __enter__(self) -> "AtomicParquet":
        try:
            self._make_folders()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._fd = os.open(self.temporary, flags, 0o666)
        except BaseException:
            self._remove_folders()
            raise
        try:
            with contextlib.suppress(OSError):  # without locks, nothing is ever taken for stale
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._sink = pa.OSFile(str(self.temporary), "wb")
            self._parquet: Any = pq.ParquetWriter(self._sink, self.schema, compression="zstd")
        except BaseException:
            self._discard()
            raise
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Appends a batch. Small ones are held back until they make a row group worth its name."""
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, self.schema)
        if table.num_rows:
            with self._named():
                self._parquet.write_table(table, row_group_size=table.num_rows)
        self._waiting, self._waiting_bytes = [], 0

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Names the target in an error of the file system (a full disk), which knows no name."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            raise OSError(error.errno, os.strerror(error.errno), str(self.target)) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            self._flush()
            with self._named():
                self._parquet.close()
                self._sink.close()
                os.fsync(self._fd)
            self._publish()
        except BaseException:
            self._discard()
            raise
        os.close(self._fd)
        _sync_folder(self.target.parent)

    def _publish(self) -> None:
        if self.overwrite:
            self.temporary.replace(self.target)
            return
        try:
            os.link(self.temporary, self.target)  # unlike a rename, never replaces
        except FileExistsError:
            raise InputError(f"{self.target} was made by someone else in the meantime") from None
        except OSError:  # a file system without hard links
            if os.path.lexists(self.target):
                raise InputError(
                    f"{self.target} was made by someone else in the meantime"
                ) from None
            self.temporary.rename(self.target)
        else:
            self.temporary.unlink()

    def _discard(self) -> None:
        self.temporary.unlink(missing_ok=True)
        os.close(self._fd)
        self._remove_folders()

    def _make_folders(self) -> None:
        missing: list[Path] = []
        folder = self.target.parent
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._made.append(folder)
            _sync_folder(folder.parent)

    def _remove_folders(self) -> None:
        for folder in reversed(self._made):
            try:
                folder.rmdir()
            except OSError:  # something else is in it by now
                return


def remove_stale(targets: Iterable[Path]) -> None:
    """Removes what runs that are over left of these targets; the files of running ones are locked
    and stay."""
    names: dict[Path, set[str]] = {}
    for target in targets:
        names.setdefault(target.parent, set()).add(target.name)
    for folder, wanted in names.items():
        if not folder.is_dir():
            continue
        for path in list(folder.iterdir()):
            left = TEMPORARY.fullmatch(path.name)
            if left is not None and left["name"] in wanted:
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:  # locked: another run is writing it
        pass
    finally:
        os.close(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such thing
            raise
    finally:
        os.close(fd)
