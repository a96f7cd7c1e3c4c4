"""What tests of kernels on the host executor share: their schedules, and the skip without g++."""

from __future__ import annotations

import pytest

from saphira_gpu.devices import _build
from saphira_gpu.devices.host import Schedule
from saphira_gpu.errors import DeviceError

# In order and out of it; many blocks at a time, so that look-back crosses its window, and few.
SCHEDULES = (
    Schedule("forward", resident=48),
    Schedule("reverse", resident=5),
    Schedule("random", seed=7, resident=48),
    Schedule("random", seed=8, resident=3, preempt=50),
)


def need_compiler() -> None:
    """Skips the module that is being imported where no g++ compiles kernels."""
    try:
        _build.compiler()
    except DeviceError as error:
        pytest.skip(str(error), allow_module_level=True)
