#!/usr/bin/env python3
"""Inputs of a fuzzer: as libFuzzer has them, one file each in a folder, and as the tree keeps them, one line of hexadecimal each.

  fuzz_corpus.py unpack HEXFILE FOLDER              makes a file of each line, named as libFuzzer does: the SHA-1 of what it holds
  fuzz_corpus.py pack FOLDER HEXFILE [INPUT_COUNT]  makes a line of each file, the shortest first and equally long ones by what they
                                                    hold; as many as asked for, 150 without, of at most 48 KiB in all.
                                                    Says how many it took

Empty files are left out. Exit status: 0, or 2 with one line that says why.
"""
import hashlib
import pathlib
import sys

INPUT_COUNT = 150
HEXFILE_BYTES = 48 * 1024


class Refused(Exception):
    pass


def unpack(hexfile, folder):
    inputs = []
    for number, line in enumerate(hexfile.read_text(encoding="ascii", errors="replace").splitlines(), 1):
        if not line or len(line) % 2 != 0 or set(line) - set("0123456789abcdef"):
            raise Refused(f"{hexfile}:{number}: not an input in hexadecimal")
        inputs.append(bytes.fromhex(line))
    if not inputs:
        raise Refused(f"{hexfile}: no inputs")
    folder.mkdir(parents=True, exist_ok=True)
    for content in inputs:
        (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


def pack(folder, hexfile, input_count):
    contents = {path.read_bytes() for path in folder.iterdir() if path.is_file()} - {b""}
    if not contents:
        raise Refused(f"{folder}: no inputs")
    lines, text_bytes = [], 0
    for content in sorted(contents, key=lambda content: (len(content), content))[:input_count]:
        text_bytes += 2 * len(content) + 1
        if text_bytes > HEXFILE_BYTES:
            break
        lines.append(content.hex() + "\n")
    if not lines:
        raise Refused(f"{folder}: no input fits")
    hexfile.write_text("".join(lines), encoding="ascii")
    print(f"{len(lines)} of {len(contents)} inputs")


def main(arguments):
    try:
        match arguments:
            case ["unpack", hexfile, folder]:
                unpack(pathlib.Path(hexfile), pathlib.Path(folder))
            case ["pack", folder, hexfile]:
                pack(pathlib.Path(folder), pathlib.Path(hexfile), INPUT_COUNT)
            case ["pack", folder, hexfile, count] if count.isdecimal():
                pack(pathlib.Path(folder), pathlib.Path(hexfile), int(count))
            case _:
                raise Refused("usage: fuzz_corpus.py unpack HEXFILE FOLDER | pack FOLDER HEXFILE [INPUT_COUNT]")
    except (OSError, Refused) as problem:
        print(f"fuzz_corpus.py: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
