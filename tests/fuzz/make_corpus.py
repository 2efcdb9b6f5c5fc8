"""Where the fuzzers begin: small files of each format, from the tests' data and crafted here.

make_corpus.py FOLDER [ARRAYS]

Writes FOLDER/npy, npz, safetensors, session and table. ARRAYS is what tests/support/make_arrays.py wrote.
"""
import io
import json
import pathlib
import struct
import sys
import zipfile

root = pathlib.Path(__file__).resolve().parents[2]
folder = pathlib.Path(sys.argv[1])
arrays = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
MOST = 1 << 14  # bytes of one file: small ones are tried more often


def write(kind, name, content):
    if len(content) <= MOST:
        target = folder / kind / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def npy(descr, shape, data, version=1, fortran=False):
    head = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head + data


def archive(entries, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, content in entries:
            target.writestr(name, content)
    return out.getvalue()


def safetensors(tensors, metadata=None, data=b""):
    head = {"__metadata__": metadata} if metadata else {}
    for name, dtype, shape, offsets in tensors:
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


def of_npy():
    yield "one", npy("<f4", "()", bytes(4))
    yield "long", npy("<f8", "(2L, 1L)", bytes(16))
    yield "empty", npy("<f4", "(0, 3)", b"")
    for i, descr in enumerate(("<f2", ">f8", "|V2", "|b1", ">i8", "<u2", "<U2", "|O", "<c8", "|S3")):
        size = 4 * int(descr[2:] or 0) if descr[1] == "U" else int(descr[2:] or 0)
        yield f"type-{i}", npy(descr, "(2, 2)", bytes(range(1, 1 + 4 * size)), 1 + i % 3, i % 2 == 1)
    yield "fields", b"\x93NUMPY\x01\x00\x50\x00{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }".ljust(94)


def of_npz():
    two = [("q.npy", npy("<f4", "(2, 2)", bytes(16))), ("../k.npy", npy(">f2", "(3,)", bytes(6), fortran=True))]
    yield "stored", archive(two, zipfile.ZIP_STORED)
    yield "deflated", archive(two, zipfile.ZIP_DEFLATED)
    yield "empty", archive([], zipfile.ZIP_STORED)
    yield "other", archive([("a.txt", b"text"), ("dir/", b"")], zipfile.ZIP_STORED)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target, target.open("q.npy", "w", force_zip64=True) as entry:
        entry.write(npy("<f4", "(1,)", bytes(4)))
    yield "zip64", out.getvalue()


def of_safetensors():
    yield "none", safetensors([])
    yield "two", safetensors([("q", "F32", [1, 2], [0, 8]), ("k", "BF16", [2], [8, 12])], {"format": "pt"}, bytes(12))
    types = [("F64", 8), ("F16", 2), ("I8", 1), ("I64", 8), ("U16", 2), ("BOOL", 1), ("F8_E4M3", 1)]
    at, tensors = 0, []
    for dtype, size in types:
        tensors.append((dtype, dtype, [2], [at, at + 2 * size]))
        at += 2 * size
    yield "types", safetensors(tensors, None, bytes(range(at)))


def of_table():
    yield "comma", b"1,2.5,-3e-4\nnan,inf,-inf\n"
    yield "names", "token;a;b\r\nthe;1;2\r\n\"貓, \"\"x\"\"\";3;4\r\n".encode()
    yield "pandas", b",0,1\n0,5,6\n1,7,8\n"
    yield "tabs", b"\xef\xbb\xbf1\t2\n3\t4"
    yield "spaces", b" 1  2\n 3 4 \n\n"


for kind, make in (("npy", of_npy), ("npz", of_npz), ("safetensors", of_safetensors), ("table", of_table)):
    for name, content in make():
        write(kind, name, content)
for path in sorted((root / "assets").rglob("*.json")):
    write("session", path.name, path.read_bytes())
write("session", "reference", b'{"qkvlab":1,"source":{"kind":"qkv","q":{"file":"x.npz","name":"q"},"k":[[[1]]],"v":[[["nan"]]]}}')
for path in sorted((root / "tests/data").rglob("*.npz")):
    write("npz", path.name, path.read_bytes())
if arrays:
    for path in sorted(arrays.iterdir()):
        kind = {".npy": "npy", ".npz": "npz", ".csv": "table", ".txt": "table"}.get(path.suffix)
        if kind and not path.stem.startswith(("little-i", "big-u")):  # half of the types say the same
            write(kind, path.name, path.read_bytes())
