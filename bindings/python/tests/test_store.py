"""The package as a program uses it.  python3 -m unittest discover bindings/python/tests"""
import ast
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import spillway


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.store = spillway.Store.in_memory(64 << 20)
        self.addCleanup(self.store.close)

    def test_is_like_a_dict(self):
        store = self.store
        store[b"key"] = b"value"
        self.assertEqual(store[b"key"], b"value")
        self.assertIn(b"key", store)
        self.assertNotIn(b"none", store)
        self.assertEqual(store.get(b"key"), b"value")
        self.assertIsNone(store.get(b"none"))
        self.assertEqual(store.get(b"none", 7), 7)
        del store[b"key"]
        with self.assertRaises(KeyError) as raised:
            store[b"key"]
        self.assertEqual(raised.exception.args, (b"key",))
        with self.assertRaises(KeyError):
            del store[b"key"]
        store[b"empty"] = b""
        self.assertEqual(store[b"empty"], b"")

    def test_items_are_of_one_moment(self):
        expected = {b"key%d" % i: b"value%d" % i for i in range(500)}
        expected[b"empty"] = b""
        self.store.put_many(expected)
        items = self.store.items()
        for i in range(500):
            self.store[b"key%d" % i] = b"new"
            self.store[b"more%d" % i] = b"new"
        del self.store[b"empty"]
        seen = list(items)
        self.assertEqual(len(seen), len(expected))
        self.assertEqual(dict(seen), expected)
        self.assertEqual(list(items), [], "it has ended")
        self.assertEqual(len(dict(self.store.items())), 1000)

    def test_items_keep_the_store_open(self):
        self.store[b"key"] = b"value"
        items = self.store.items()
        with self.assertRaisesRegex(spillway.InUseError, r"iterators of items\(\) are open"):
            self.store.close()
        del items
        self.store.close()
        with self.assertRaises(ValueError):
            self.store.items()

    def test_items_give_way(self):
        keys = [b"key%d" % i for i in range(350)]
        self.store.put_many({key: bytes(100_000) for key in keys})
        items = self.store.items()
        self.store.put_many({key: bytes(100_000) for key in keys})
        with self.assertRaises(spillway.CanceledError):
            list(items)

    def test_bytes_of_any_kind(self):
        self.store[bytearray(b"key\0")] = memoryview(b"a value")[2:]
        self.assertEqual(self.store[b"key\0"], b"value")
        for wrong in ("key", 7, None):
            with self.assertRaises(TypeError):
                self.store[wrong]
            with self.assertRaises(TypeError):
                self.store[b"key"] = wrong
            with self.assertRaises(TypeError):
                self.store.get_many([b"key", wrong])

    def test_conditions_and_versions(self):
        store = self.store
        first = store.put(b"key", b"1", when="absent", flags=5)
        self.assertGreater(first, 0)
        self.assertIsNone(store.put(b"key", b"2", when="absent"))
        self.assertIsNone(store.put(b"none", b"2", when="present"))
        second = store.put(b"key", b"2", when="version", version=first, flags=6, expires_ms=1 << 47)
        self.assertIsNone(store.put(b"key", b"3", when="version", version=first))
        entry = store.get_entry(b"key")
        self.assertEqual(entry, (b"2", second, 1 << 47, 6))
        self.assertEqual((entry.value, entry.version, entry.expires_ms, entry.flags), entry)
        self.assertIsNone(store.get_entry(b"none"))
        self.assertFalse(store.delete(b"key", version=first))
        self.assertTrue(store.delete(b"key", version=second))
        self.assertFalse(store.delete(b"key"))
        store.put(b"gone", b"x", expires_ms=1)
        self.assertIsNone(store.get(b"gone"))
        with self.assertRaisesRegex(ValueError, "^when is 'sometimes'; give 'always', 'absent', 'present' or 'version'$"):
            store.put(b"key", b"1", when="sometimes")

    def test_version_0_never_holds(self):
        store = self.store
        for _ in range(2):
            self.assertIsNone(store.put(b"key", b"2", when="version", version=0))
            self.assertFalse(store.delete(b"key", version=0))
            store[b"key"] = b"1"
        self.assertEqual(store[b"key"], b"1")
        self.assertTrue(store.delete(b"key", version=None))

    def test_a_version_and_its_condition_go_together(self):
        store = self.store
        version = store.put(b"key", b"1", version=None)
        for when in ("always", "absent", "present"):
            for given in (0, version):
                with self.assertRaisesRegex(ValueError, "^version goes with when='version' only$"):
                    store.put(b"key", b"2", when=when, version=given)
        with self.assertRaisesRegex(ValueError, "^version goes with when='version' only$"):
            store.put(b"key", b"2", version=version)
        for options in ({}, {"version": None}):
            with self.assertRaisesRegex(ValueError, "^when is 'version'; give the version, too$"):
                store.put(b"key", b"2", when="version", **options)
        self.assertEqual(store.get_entry(b"key")[:2], (b"1", version))

    def test_numbers_that_do_not_fit(self):
        store = self.store
        store.put(b"key", b"1", flags=(1 << 32) - 1)
        before = store.get_entry(b"key")
        self.assertEqual(before.flags, (1 << 32) - 1)
        self.assertFalse(store.delete(b"key", version=(1 << 64) - 1))
        for most, call, name in (((1 << 64) - 1, store.put, "expires_ms"), ((1 << 32) - 1, store.put, "flags"),
                                 ((1 << 64) - 1, store.put, "version"), ((1 << 64) - 1, store.delete, "version")):
            arguments = (b"key", b"2") if call == store.put else (b"key",)
            when = {"when": "version"} if (call, name) == (store.put, "version") else {}
            # Counted modulo 2^64, the last three are 0 and twice the version.
            for wrong in (-1, most + 1, 1 << 1000, before.version + (1 << 64), before.version - (1 << 64)):
                with self.subTest(call=call, name=name, wrong=wrong):
                    with self.assertRaisesRegex(OverflowError, f"^{name} is below 0 or above {most}$"):
                        call(*arguments, **when, **{name: wrong})
            for wrong in ("1", 1.0):
                with self.assertRaises(TypeError):
                    call(*arguments, **when, **{name: wrong})
        self.assertEqual(store.get_entry(b"key"), before)
        for wrong in (-1, 1 << 64, (1 << 64) + (64 << 20)):
            with self.assertRaisesRegex(OverflowError, "^capacity_bytes is below 0 or above 18446744073709551615$"):
                spillway.Store.in_memory(wrong)

    def test_many(self):
        store = self.store
        pairs = {b"key%d" % i: b"value%d" % i for i in range(1000)}
        store.put_many(pairs)
        self.assertEqual(store.get_many(pairs), list(pairs.values()))
        self.assertEqual(store.get_many([b"key1", b"none", b"key2"]), [b"value1", None, b"value2"])
        store.put_many((b"same", b"%d" % i) for i in range(500))
        self.assertEqual(store[b"same"], b"499")
        self.assertEqual(store.get_many([]), [])
        self.assertIsNone(store.put_many([]))
        self.assertEqual(store.delete_many([b"key1", b"none", b"key2"]), 2)
        self.assertNotIn(b"key1", store)
        for wrong in ([b"pair"], [(b"a", b"b", b"c")], [(b"a", 7)], 7):
            with self.assertRaises((TypeError, ValueError)):
                store.put_many(wrong)
        with self.assertRaisesRegex(spillway.Error, "a key of 0 bytes"):
            store.get_many([b"key3", b""])
        with self.assertRaisesRegex(spillway.Error, "a key of 0 bytes"):
            store.put_many([(b"key3", b"new"), (b"", b"")])
        self.assertEqual(store[b"key3"], b"new")

    def test_errors_have_the_librarys_line(self):
        with self.assertRaisesRegex(spillway.Error, "^store: a key of 65537 bytes; give 1 to 65536$") as raised:
            self.store[bytes(65537)] = b""
        self.assertEqual(raised.exception.status, -1)
        with self.assertRaises(spillway.FullError):
            for i in range(1000):
                self.store[b"%d" % i] = bytes(200_000)

    def test_large_values(self):
        large = bytes(range(251)) * 10_000
        self.store[b"large"] = large
        self.store.put_many({b"small": b"1", b"other": large[1:]})
        self.assertEqual(self.store[b"large"], large)
        self.assertEqual(self.store.get_many([b"small", b"other", b"none", b"large"]), [b"1", large[1:], None, large])
        self.assertEqual(self.store.get_entry(b"other").value, large[1:])

    def test_statistics(self):
        self.store[b"key"] = b"value"
        stats = self.store.stats()
        self.assertEqual(stats["index"]["entries"], 1)
        self.assertEqual(stats["put_latency"]["count"], 1)
        self.assertGreater(stats["put_latency"]["max_ns"], 0)
        self.assertEqual(self.store.get_many([b"key", b"none"]), [b"value", None])
        stats = self.store.stats()
        self.assertEqual((stats["get_many_latency"]["count"], stats["use"]["asked_keys"]), (1, 2))
        self.assertEqual(stats["use"]["reads_per_get"], 0.5)
        self.assertEqual(stats, json.loads(json.dumps(stats)))

    def test_closed(self):
        self.store.close()
        self.store.close()
        for call in (lambda: self.store[b"key"], lambda: self.store.put_many({b"a": b"b"}), self.store.stats,
                     lambda: b"key" in self.store, lambda: self.store.get_many([b"key"])):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()

    def test_threads(self):
        store = self.store

        def count_up():
            for _ in range(200):
                while True:
                    entry = store.get_entry(b"counter")
                    if entry is None:
                        done = store.put(b"counter", b"1", when="absent")
                    else:
                        done = store.put(b"counter", b"%d" % (int(entry.value) + 1), when="version", version=entry.version)
                    if done:
                        break

        threads = [threading.Thread(target=count_up) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(store[b"counter"], b"800")

    def test_a_child_leaves_it_alone(self):
        self.store[b"key"] = b"value"
        child = os.fork()
        if child == 0:
            try:
                self.store.get(b"key")
            except ValueError:
                self.store.close()
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(self.store[b"key"], b"value")


class FileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "store")

    def test_outlives_the_program(self):
        with self.assertRaises(spillway.NotFoundError):
            spillway.Store(self.path)
        spillway.make(self.path, capacity_bytes=32 << 20)
        with self.assertRaises(spillway.StoreExistsError):
            spillway.make(self.path, capacity_bytes=32 << 20)
        with spillway.Store(self.path) as store:
            store.put_many({b"a": b"1", b"b": b"2"})
            with self.assertRaisesRegex(spillway.InUseError, "in use, here or"):
                spillway.Store(self.path)
        for durability in ("sync", "batch", "none"):
            with spillway.Store(self.path, durability=durability, batch_ms=1) as store:
                self.assertEqual(store.get_many([b"a", b"b"]), [b"1", b"2"])
        os.chmod(self.path, 0o444)
        with spillway.Store(self.path, read_only=True) as store:
            self.assertEqual(store[b"a"], b"1")
            with self.assertRaisesRegex(spillway.Error, "reading only"):
                store[b"a"] = b"2"
        os.chmod(self.path, 0o644)
        spillway.make(self.path, overwrite=True, segment_bytes=1 << 20, grain_bytes=4096, spare_percent=5)
        with spillway.Store(self.path) as store:
            self.assertIsNone(store.get(b"a"))
            self.assertEqual(store.stats()["store"]["grain_bytes"], 4096)
        with self.assertRaisesRegex(ValueError, "^durability is 'forever'; give 'sync', 'batch' or 'none'$"):
            spillway.Store(self.path, durability="forever")

    def test_numbers_that_do_not_fit(self):
        for name, bits in (("capacity_bytes", 64), ("segment_bytes", 64), ("grain_bytes", 32), ("spare_percent", 32)):
            for wrong in (-1, 1 << bits, (1 << bits) + (32 << 20), (32 << 20) - (1 << bits)):
                with self.subTest(name=name, wrong=wrong):
                    with self.assertRaisesRegex(OverflowError, f"^{name} is below 0 or above {(1 << bits) - 1}$"):
                        spillway.make(self.path, **{"capacity_bytes": 32 << 20, name: wrong})
        self.assertFalse(os.path.exists(self.path))
        spillway.make(self.path, capacity_bytes=32 << 20)
        for wrong in (-1, 1 << 32, (1 << 32) + 10):
            with self.assertRaisesRegex(OverflowError, "^batch_ms is below 0 or above 4294967295$"):
                spillway.Store(self.path, durability="batch", batch_ms=wrong)
        with spillway.Store(self.path, durability="batch", batch_ms=10):
            pass

    # The devices take 100 ms for each request, so that both calls are at work at the same time.
    def test_two_threads_that_open_one_object(self):
        paths = (self.path, self.path + "-other")
        for path in paths:
            spillway.make(path, capacity_bytes=34 << 20, segment_bytes=4 << 20)
        store = spillway.Store.__new__(spillway.Store)
        refused = []

        def open_it(path):
            try:
                store.__init__(f"latency:us=100000:[{path}]")
            except ValueError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=open_it, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(refused, ["the store is open already"])
        store.close()
        for path in paths:
            spillway.Store(path).close()

    def test_an_argument_that_opens_the_object(self):
        spillway.make(self.path, capacity_bytes=32 << 20)
        store = spillway.Store.__new__(spillway.Store)

        class Path:
            def __fspath__(own):
                store.__init__(self.path)
                return self.path + "-other"

        with self.assertRaisesRegex(ValueError, "^the store is open already$"):
            store.__init__(Path())
        store[b"key"] = b"value"
        self.assertEqual(store[b"key"], b"value")
        store.close()
        spillway.Store(self.path).close()

    def test_a_store_that_is_dropped_is_closed(self):
        spillway.make(self.path, capacity_bytes=32 << 20)
        store = spillway.Store(self.path)
        store[b"key"] = b"value"
        del store
        with spillway.Store(self.path) as again:
            self.assertEqual(again[b"key"], b"value")

    def test_a_child_does_not_keep_what_is_closed(self):
        spillway.make(self.path, capacity_bytes=32 << 20)
        with spillway.Store(self.path) as store:
            store[b"key"] = b"value"
            child = os.fork()
            if child == 0:
                while True:
                    signal.pause()
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        with spillway.Store(self.path) as again:
            self.assertEqual(again[b"key"], b"value")

    # Calls that wait let other threads run: the device takes 100 ms for each request.
    def test_the_interpreter_lock_is_released(self):
        spillway.make(self.path, capacity_bytes=34 << 20, segment_bytes=4 << 20)
        with spillway.Store(self.path) as store:
            store.put_many({b"%d" % i: b"value" for i in range(3)})
        with spillway.Store(f"latency:us=100000:[{self.path}]") as store:
            in_call = threading.Event()
            ended = []

            def read(call):
                in_call.set()
                call()
                ended.append(True)

            for call in (lambda: store[b"1"], lambda: store.get_many([b"0", b"1", b"2"]), lambda: store.put_many({b"3": b"x"}),
                         lambda: store.put(b"4", b"x")):
                in_call.clear()
                ended.clear()
                thread = threading.Thread(target=read, args=(call,))
                thread.start()
                in_call.wait()
                turns = 0
                while not ended:
                    turns += 1
                    if turns == 3:
                        with self.assertRaisesRegex(spillway.InUseError, "under way"):
                            store.close()
                    if turns <= 3:  # then as fast as it can: it may be without a processor for most of the call
                        time.sleep(0.001)
                thread.join()
                self.assertGreater(turns, 4)

    # The second call waits for the first one: it has looked at its key, and has written nothing.
    def test_a_key_that_another_thread_changes(self):
        spillway.make(self.path, capacity_bytes=34 << 20, segment_bytes=4 << 20)
        for put in (lambda store, key: store.put(key, b"second"), lambda store, key: store.put_many([(key, b"second")])):
            with spillway.Store(f"latency:us=100000:[{self.path}]") as store:
                key = bytearray(b"key")
                threads = [threading.Thread(target=store.put, args=(b"key", b"first")), threading.Thread(target=put, args=(store, key))]
                for thread in threads:
                    thread.start()
                    time.sleep(0.05)
                key[0] = ord("K")
                for thread in threads:
                    thread.join()
                found = [value for value in store.get_many([b"key", b"Key"]) if value is not None]
                self.assertEqual(store.stats()["index"]["entries"], len(found), "what was put is found under one of the two keys")

    def test_sync_has_it_after_the_process_was_killed(self):
        spillway.make(self.path, capacity_bytes=32 << 20)
        program = "import os, signal, spillway, sys\ns = spillway.Store(sys.argv[1])\ns[b'key'] = b'value'\nos.kill(os.getpid(), signal.SIGKILL)"
        ended = subprocess.run([sys.executable, "-c", program, self.path])
        self.assertEqual(ended.returncode, -9)
        with spillway.Store(self.path) as store:
            self.assertEqual(store[b"key"], b"value")


class VersionTest(unittest.TestCase):
    def test_version(self):
        self.assertRegex(spillway.library_version(), r"^\d+\.\d+\.\d+$")


class HintsTest(unittest.TestCase):
    def test_hints_are_of_what_there_is(self):
        folder = pathlib.Path(spillway.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        nodes = {node.name: node for node in ast.parse((folder / "__init__.pyi").read_text()).body
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(set(nodes), set(spillway.__all__))
        hinted = {node.name for node in nodes["Store"].body if isinstance(node, ast.FunctionDef)}
        own = {name for name in vars(spillway.Store) if not name.startswith("_") or name in hinted}
        self.assertEqual(hinted, own)
        self.assertEqual([node.target.id for node in nodes["Entry"].body], list(spillway.Entry.__match_args__))
        # Arguments that have a name in the hints can be passed by it.
        with spillway.Store.in_memory(64 << 20) as store:
            for node in nodes["Store"].body:
                if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                    continue
                has_names = len(node.args.args) > 1
                first = (node.args.posonlyargs + node.args.args)[1:2]
                if first and not has_names:
                    with self.assertRaisesRegex(TypeError, "takes no keyword arguments", msg=node.name):
                        getattr(store, node.name)(**{first[0].arg: b"key"})
                elif has_names:
                    names = {argument.arg: b"key" for argument in node.args.args[1:]}
                    getattr(store, node.name)(**names)


if __name__ == "__main__":
    unittest.main()
