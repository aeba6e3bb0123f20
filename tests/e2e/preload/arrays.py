"""Sum, sort and matrix product of an array of so many MiB, and a list: the same natively and in little memory."""
import hashlib
import subprocess
import sys

import numpy as np

n = int(sys.argv[1]) << 17
a = (np.arange(n, dtype=np.int64) * 6364136223846793005) >> 7
print("sum", a.sum(), (a[::-3] * 2).sum())
a.sort()
print("sort", a[0], a[-1], hashlib.sha256(a).hexdigest())
m = (np.arange(n, dtype=np.float64) % 1000).reshape(-1, 1024)
v = (np.arange(1024 * 8, dtype=np.float64) % 17).reshape(1024, 8)
print("product", hashlib.sha256(m @ v).hexdigest())
numbers = [str(i * 7919 % 1000003) for i in range(n // 64)]
numbers.sort()
print("list", len(numbers), numbers[1000], hashlib.sha256("".join(numbers).encode()).hexdigest())
print(subprocess.run(["echo", "a child"], capture_output=True, text=True, check=True).stdout, end="")
