"""How much of what is asked for a cache has: ours on the disk, memcached in memory, and an exact LRU list, each with as many bytes; the same requests in the
same order. Who does not find a key stores it, as programs do that have a cache before something slower."""
import bisect
import collections
import itertools
import random
import re
import socket

VALUE_BYTES, KEY_BYTES = 1024, 8
TOGETHER = 100  # keys of a get
FOUND = re.compile(rb"VALUE (\w+) ")
TRACES = {
    # A key's share by Zipf's law, as YCSB has it.
    "zipf": lambda zipf, fresh: zipf(),
    # Each fourth request is for a key that is never asked for again.
    "zipf+once": lambda zipf, fresh: fresh() if random.random() < 0.25 else zipf(),
}


class Keys:
    def __init__(self, count, trace):
        weights = list(itertools.accumulate(1 / (rank + 1) ** 0.99 for rank in range(count)))
        self.names = [f"k{number:07d}" for number in range(count)]
        random.shuffle(self.names)
        self.fresh = itertools.count()
        self.next = lambda: TRACES[trace](lambda: self.names[bisect.bisect_left(weights, random.random() * weights[-1])],
                                          lambda: f"n{next(self.fresh):07d}")


class Lru:
    """Exactly the last used ones that fit; of the bytes an item has keys and values only are counted."""

    def __init__(self, most):
        self.most = most
        self.items = collections.OrderedDict()

    def missing(self, keys):
        found = {key for key in keys if key in self.items}
        for key in keys:
            if key in found:
                self.items.move_to_end(key)
        return [key for key in keys if key not in found]

    def store(self, keys):
        for key in keys:
            self.items[key] = None
            self.items.move_to_end(key)
        while len(self.items) > self.most:
            self.items.popitem(last=False)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)

    def receive(self, end):
        """Until it ends so."""
        parts = [self.socket.recv(1 << 18)]
        while not (parts[-1] if len(parts[-1]) >= len(end) else b"".join(parts[-2:])).endswith(end):
            parts.append(self.socket.recv(1 << 18))
            if not parts[-1]:
                raise ConnectionError("the server has ended the connection")
        return b"".join(parts)

    def missing(self, keys):
        self.socket.sendall(b"get %s\r\n" % " ".join(keys).encode())
        found = set(FOUND.findall(self.receive(b"END\r\n")))
        return [key for key in keys if key.encode() not in found]

    def store(self, keys):
        value = b"v" * VALUE_BYTES
        self.socket.sendall(b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key.encode(), len(value), value) for key in keys) + b"mn\r\n")
        self.receive(b"MN\r\n")


def hit_rate(cache, trace, keys, requests):
    """Of the second half of the requests."""
    random.seed(7)
    source = Keys(keys, trace)
    hits = asked = 0
    for at in range(0, requests, TOGETHER):
        batch = list(dict.fromkeys(source.next() for _ in range(TOGETHER)))
        missing = cache.missing(batch)
        cache.store(missing)
        if at >= requests // 2:
            asked += len(batch)
            hits += len(batch) - len(missing)
    return hits / asked
