"""The output columns: `input_ids` and `num_tokens` made from what encode_arrow returned."""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from saphira_gpu.errors import InputError

INPUT_IDS = "input_ids"
NUM_TOKENS = "num_tokens"
METADATA_KEY = b"saphira_gpu"


def output_schema(kept: list[pa.Field], about: dict[str, Any], dtype: np.dtype[Any]) -> pa.Schema:
    """`input_ids: list<dtype>`, `num_tokens: int64` (as count_arrow gives it), then the kept
    fields.

    about: what made the ids (tokenizer, fingerprint, version, options), stored as JSON under the
    schema metadata key `saphira_gpu`.
    """
    ids = pa.list_(pa.from_numpy_dtype(dtype))
    fields = [pa.field(INPUT_IDS, ids), pa.field(NUM_TOKENS, pa.int64()), *kept]
    return pa.schema(
        fields, metadata={METADATA_KEY: json.dumps(about, ensure_ascii=False).encode()}
    )


def id_columns(ids: Any, bos: int | None, eos: int | None) -> tuple[pa.ListArray, pa.Int64Array]:
    """Ids and counts of a batch's rows; null rows are null in both.

    ids: a pyarrow ListArray or LargeListArray of integers. bos, eos: ids put before and after those
    of every row that is not null, and counted.
    Raises InputError where the ids outnumber what list offsets can address (2^31 - 1).
    """
    valid = ids.is_valid().to_numpy(zero_copy_only=False)
    lengths = ids.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    lengths += valid * ((bos is not None) + (eos is not None))
    mask = None if valid.all() else ~valid
    counts = pa.array(lengths, pa.int64(), mask=mask)
    if bos is None and eos is None and pa.types.is_list(ids.type):
        return ids, counts
    values = ids.flatten().to_numpy(zero_copy_only=False)  # without what null rows may cover
    ends = np.cumsum(lengths)
    n = int(ends[-1]) if len(ends) else 0
    if n > 2**31 - 1:
        raise InputError(f"{n} ids in one row do not fit {pa.list_(ids.type.value_type)}")
    if n > len(values):
        edges = [(bos, ends[valid] - lengths[valid]), (eos, ends[valid] - 1)]
        is_text = np.ones(n, np.bool_)
        longer = np.empty(n, values.dtype)
        for token, places in edges:
            if token is not None:
                is_text[places] = False
                longer[places] = token
        longer[is_text] = values
        values = longer
    offsets = np.zeros(len(lengths) + 1, np.int32)
    offsets[1:] = ends
    lists = pa.ListArray.from_arrays(
        pa.array(offsets),
        pa.array(values, ids.type.value_type),
        mask=None if mask is None else pa.array(mask),
    )
    return lists, counts


def read_about(schema: pa.Schema) -> dict[str, Any]:
    """What output_schema stored, or an empty dict for a file of another origin."""
    raw = (schema.metadata or {}).get(METADATA_KEY)
    try:
        about = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}
