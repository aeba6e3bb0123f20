"""Counts how often each word was given, in a store that outlives the program.  kv_example.py FILE WORD..."""
import os
import sys

import spillway

if len(sys.argv) < 2:
    sys.exit("usage: kv_example.py FILE WORD...")
path, words = sys.argv[1], sys.argv[2:]
if not os.path.exists(path):
    spillway.make(path, capacity_bytes=64 << 20)

with spillway.Store(path) as store:
    before = store.get_many([word.encode() for word in words])  # their reads are in flight together
    counts = {word: int(value or b"0") for word, value in zip(words, before)}
    for word in words:
        counts[word] += 1
    store.put_many({word.encode(): b"%d" % count for word, count in counts.items()})
    for word in counts:
        print(word, int(store[word.encode()]))
