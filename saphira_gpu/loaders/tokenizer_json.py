"""`tokenizer.json` of a byte-level BPE tokenizer → Spec.

Supported: a BPE model whose tokens are written in the byte alphabet (`_model`); ByteLevel anywhere
in the pre_tokenizer, with whatever `PreTokenizer` can split by around it (`_pretok`); the
normalizers of `_normalizer`; the post-processors and decoders of `_post`, which never touch the ids
of text; added tokens with every flag (`_added`). Stored truncation and padding are reported as a
warning and not applied. Whatever else a file asks for is refused by name. Where the file format
leaves a choice, the reference (`tokenizers` 0.23.3) decides.
"""

from __future__ import annotations

import warnings

from saphira_gpu.loaders import _added, _model, _normalizer, _post, _pretok
from saphira_gpu.loaders._document import Document, shown
from saphira_gpu.spec import Spec

_TOP = {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer"}
_TOP |= {"post_processor", "decoder", "model"}


def parse(
    data: bytes, origin: str, eos: str | None = None, bos: str | None = None, warn: bool = True
) -> Spec:
    """The Spec of a file's bytes. `origin` names the file in messages; `eos` and `bos` come from
    beside it.

    Raises TokenizerFileError for a malformed file, UnsupportedError for what isn't supported.
    """
    return of_document(Document(data, origin), eos, bos, warn)


def of_document(
    doc: Document, eos: str | None = None, bos: str | None = None, warn: bool = True
) -> Spec:
    """The same from the file's JSON."""
    root = doc.root
    doc.only(root, _TOP, "")
    if root.get("version") not in (None, "1.0"):
        doc.unsupported("version", root["version"])
    model = doc.member(root, "model", dict, "")
    _model.kind(doc, model)
    vocab = _model.vocab(doc, model)
    contents = _added.contents(doc, root.get("added_tokens"))
    bpe = _model.bpe(doc, model, vocab, contents)
    spec = Spec(
        added=_added.tokens(doc, contents, vocab),
        pretok=_pretok.pretok(doc, root.get("pre_tokenizer")),
        bpe=bpe,
        name=doc.origin,
        eos=eos,
        normalizers=_normalizer.steps(doc, root.get("normalizer")),
        bos=bos,
        post=_post.post_processor(doc, root.get("post_processor")),
        decoder=_post.decoder(doc, root.get("decoder"), bpe.end_of_word_suffix),
    )
    if warn:
        _report(doc, "truncation")
        _report(doc, "padding")
    return spec


def _report(doc: Document, key: str) -> None:
    value = doc.root.get(key)
    if value is not None:
        message = f"{doc.origin}: {key} = {shown(value)} is stored in the file and not applied"
        warnings.warn(message, UserWarning, stacklevel=6)
