"""A key-value store on flash devices and files (spillway/kv.h, docs/kv-api.md).

    spillway.make("/tmp/store", capacity_bytes=1 << 30)
    with spillway.Store("/tmp/store") as store:
        store[b"key"] = b"value"
        store.get_many([b"key", b"other"])      # [b"value", None], read together

Keys and values are bytes, or objects that contain bytes (bytearray, memoryview). All threads may use a Store: calls release the interpreter
lock while they wait, and each call has a session of its own. Errors are exceptions with the library's line.
"""
from ._kv import (CanceledError, DamagedError, Entry, Error, FullError, InUseError, NotFoundError, Store, StoreExistsError,
                  library_version, make)

__all__ = ["CanceledError", "DamagedError", "Entry", "Error", "FullError", "InUseError", "NotFoundError", "Store",
           "StoreExistsError", "library_version", "make"]
