"""Writes arrays of every dtype, byte order, memory order, version and compression with NumPy itself.

make_arrays.py FOLDER

FOLDER/manifest.json lists them: [{"file", "name", and either "dtype", "shape", "float32", "float64" (files with the
expected numbers, little endian, C order), or "texts" with "shape", or "problem" (a part of the message)}].
"""
import json
import pathlib
import sys
import zipfile

import numpy as np
from numpy.lib import format as npy

folder = pathlib.Path(sys.argv[1])
manifest = []


def numbers(dtype, shape):
    """Numbers that tell every byte and every place apart, with the extremes of the type in front."""
    count = int(np.prod(shape, dtype=np.int64))
    kind = np.dtype(dtype)
    if kind.kind == "f":
        limits = np.finfo(kind)
        first = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, limits.max if kind.itemsize < 8 else 3e38, limits.tiny]
        first.append(float(limits.smallest_subnormal))
        rest = np.random.default_rng(1).standard_normal(count)
    elif kind.kind == "b":
        first, rest = [True, False], np.arange(count) % 3 == 0
    else:
        limits = np.iinfo(kind)
        first, rest = [limits.min, limits.max, 0, 1], np.arange(count) % 100
    values = np.array(rest).astype(kind.newbyteorder("="))
    values[: len(first)] = np.array(first[:count]).astype(kind.newbyteorder("=")) if kind.kind != "u" else [
        int(x) for x in first[:count]]
    return values.reshape(shape).astype(kind)


def expect(file, name, array, dtype=None):
    entry = {"file": file, "name": name, "shape": list(array.shape)}
    if array.dtype.kind == "U":
        entry["texts"] = [str(text) for text in array.flatten(order="C")]
    else:
        entry["dtype"] = dtype or array.dtype.newbyteorder("=").name
        for width in ("float32", "float64"):
            entry[width] = f"{len(manifest)}.{width}"
            with np.errstate(all="ignore"):
                expected = np.ascontiguousarray(array).astype("<f4" if width == "float32" else "<f8")
            (folder / entry[width]).write_bytes(expected.tobytes(order="C"))
    manifest.append(entry)


def refuse(file, name, problem):
    manifest.append({"file": file, "name": name, "problem": problem})


def write_npy(stem, array, version=None):
    with open(folder / f"{stem}.npy", "wb") as out:
        npy.write_array(out, array, version=version)


bundle = {}
for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"):
    for order in "<>":
        for shape in ((2, 3, 4), (), (0, 3), (5,), (1, 7)):
            for memory in "CF":
                array = np.array(numbers(order + code, shape), order=memory)
                stem = f"{'big' if order == '>' else 'little'}-{code}-{'x'.join(map(str, shape)) or 'one'}-{memory}"
                write_npy(stem, array)
                expect(f"{stem}.npy", stem, array)
                bundle[stem] = array

for version in ((1, 0), (2, 0), (3, 0)):
    array = numbers("<f4", (3, 5))
    stem = f"version-{version[0]}"
    write_npy(stem, array, version)
    expect(f"{stem}.npy", stem, array)

halves = numbers("<f4", (4, 6))
bits = (halves.view("<u4") >> 16).astype("<u2")
exact = (bits.astype("<u4") << 16).view("<f4")
write_npy("bfloat16", bits.view("V2"))
expect("bfloat16.npy", "bfloat16", exact, "bfloat16")

texts = np.array([["the", "cat"], ["貓", "😀 e\u0301"], ["", " Ġx\n"]])
for order in "<>":
    for memory in "CF":
        stem = f"texts-{'big' if order == '>' else 'little'}-{memory}"
        array = np.array(texts.astype(texts.dtype.newbyteorder(order)), order=memory)
        write_npy(stem, array)
        expect(f"{stem}.npy", stem, array)
        bundle[stem] = array

np.savez(folder / "stored.npz", **bundle)
np.savez_compressed(folder / "deflated.npz", **bundle)
for file in ("stored.npz", "deflated.npz"):
    for name, array in bundle.items():
        expect(file, name, array)

zeros = np.zeros((500, 1000), "<f4")  # deflates almost a thousandfold, which is no bomb
np.savez_compressed(folder / "zeros.npz", zeros=zeros)
expect("zeros.npz", "zeros", zeros)

with zipfile.ZipFile(folder / "zip64.npz", "w", allowZip64=True) as archive:
    with archive.open("q.npy", "w", force_zip64=True) as out:
        npy.write_array(out, numbers("<f4", (2, 2)))
expect("zip64.npz", "q", numbers("<f4", (2, 2)))

for stem, array, problem in (
    ("objects", np.array([1, "a", None], dtype=object), "pickled Python objects are never read"),
    ("complex", np.ones(3, "<c8"), "complex numbers (dtype <c8) are not read"),
    ("fields", np.zeros(3, [("a", "<f4"), ("b", "<i2")]), "the structured dtype [('a', '<f4'), ('b', '<i2')] is not"),
    ("bytes", np.array([b"ab", b"c"]), "byte strings (dtype |S2) are not read"),
    ("dates", np.array(["2024-01-01"], "<M8[D]"), "dtype <M8[D] is not read"),
    ("long", np.ones(2, np.longdouble), "dtype <f16 is not read"),
):
    np.save(folder / f"{stem}.npy", array, allow_pickle=True)
    refuse(f"{stem}.npy", stem, problem)

tables = numbers("<f4", (3, 4))
tables[~np.isfinite(tables)] = 0.1
np.savetxt(folder / "table.csv", tables, delimiter=",", fmt="%.9g")
expect("table.csv", "table", np.loadtxt(folder / "table.csv", delimiter=","))
np.savetxt(folder / "spaces.txt", tables, fmt="%.9g")
expect("spaces.txt", "spaces", np.loadtxt(folder / "spaces.txt"))

(folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False), encoding="utf-8")
