#!/usr/bin/env python3
"""random_program.py SEED: prints a C program made of random accesses to heap memory, without undefined
behaviour (given -fwrapv -fno-strict-aliasing), which prints a checksum of all that it computed."""
import random
import sys

BYTES = 12000  # of each buffer; everything accessed lies below BYTES - SLACK
SLACK = 1200
TYPES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "int8_t": 1, "int32_t": 4, "int64_t": 8}


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.walks = seed > 12  # the programs of smaller seeds stay what they were
        self.objects = seed > 40
        self.shapes = seed > 48
        self.exits = []  # labels behind the loops around what is being written
        self.loops = 0
        self.lines = []

    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, low, high):
        return self.random.randint(low, high)

    def variable(self):
        return f"v{self.number(0, 4)}"

    def buffer(self):
        return self.pick("a", "b", "c")

    def value(self, indices):
        return self.pick(self.variable(), str(self.number(0, 99999)) + "u", *indices)

    def operation(self):
        return self.pick("+", "-", "*", "^", "|", "&")

    def place(self, indices, align):
        """An offset into a buffer, a multiple of align: constant, affine in a loop's index, or wild."""
        kind = self.number(0, 3)
        if kind == 0:
            return str(self.number(0, 300) * align)
        if kind == 1 and indices:
            # Indices stay below 1000.
            scale = self.pick(*[s for s in (1, 2, 4, 8, 10, 3) if s % align == 0 or align == 1] or [align])
            return f"{self.pick(*indices)} * {max(scale, align)}u + {self.number(0, 40) * align}u"
        if kind == 2:
            return f"({self.variable()} & 7) * {align}u + {self.number(0, 200) * align}u"
        return f"({self.value(indices)} % {(BYTES - SLACK) // align}u) * {align}u"

    def cell(self, indices):
        name = self.random.choice(list(TYPES))
        return f"*({name}*)({self.buffer()} + {self.place(indices, TYPES[name])})"

    def emit(self, depth, text):
        self.lines.append("  " * depth + text)

    def statement(self, depth, indices):
        if self.shapes and self.number(0, 3) == 0:
            self.shape(depth, indices)
            return
        kind = self.number(0, 15 if self.walks else 13)
        if kind >= 14:
            self.walk(depth, indices)
        elif kind <= 3:
            self.emit(depth, f"{self.variable()} {self.operation()}= {self.cell(indices)};")
        elif kind <= 5:
            self.emit(depth, f"{self.cell(indices)} = {self.value(indices)} {self.operation()} {self.value(indices)};")
        elif kind == 6:
            self.emit(depth, f"{self.cell(indices)} {self.operation()}= {self.cell(indices)};")
        elif kind == 7:
            place = self.place(indices, 8)
            self.emit(depth, f"{{ struct S* s = (struct S*)({self.buffer()} + {place});")
            for _ in range(self.number(2, 6)):
                self.emit(depth + 1, self.pick(
                    "s->count++;", f"s->tag ^= {self.variable()};", f"{self.variable()} += s->wide[s->tag & 3];",
                    "s->wide[1] = s->wide[2] + s->count;", f"s->half = {self.variable()};",
                    f"if (s->half > s->tag) {self.variable()} = bump({self.variable()});",
                    "s->odd.x += s->odd.y;", "*s = s[1];"))
            self.emit(depth, "}")
        elif kind == 8:
            function = self.pick("memcpy", "memmove")
            size = self.pick(1, 3, 8, 16, 24, 31, 40, 64, 100, 256, 300)
            # Different buffers, or memcpy would overlap.
            to, source = self.random.sample(["a", "b", "c"], 2)
            self.emit(depth, f"{function}({to} + {self.place(indices, 1)}, {source} + {self.place(indices, 1)}, {size});")
        elif kind == 9:
            self.emit(depth, f"memset({self.buffer()} + {self.place(indices, 1)}, {self.variable()}, {self.number(1, 80)});")
        elif kind == 10 and depth < 4:
            self.emit(depth, f"if ({self.value(indices)} {self.pick('<', '>', '&', '!=')} {self.value(indices)}) {{")
            self.block(depth + 1, indices)
            self.emit(depth, "} else {")
            self.block(depth + 1, indices)
            self.emit(depth, "}")
        elif kind == 11:
            self.emit(depth, f"{self.variable()} = bump({self.value(indices)});")
        elif kind == 12:
            self.emit(depth, f"{self.variable()} += __atomic_fetch_{self.pick('add', 'xor', 'or')}((uint32_t*)"
                             f"({self.buffer()} + {self.place(indices, 4)}), {self.variable()}, __ATOMIC_SEQ_CST);")
        elif depth < 4:
            self.loop(depth, indices)

    def shape(self, depth, indices):
        """What is seldom met: elements of odd sizes, volatile ones, the end of several loops at once, counters that wrap."""
        kind = self.number(0, 5)
        if kind == 0:
            self.emit(depth, f"{self.variable()} += {self.gap(indices)} >> {self.number(0, 100)};")
        elif kind == 1:
            self.emit(depth, f"{self.gap(indices)} *= {self.value(indices)} | 1u;")
        elif kind == 2:
            name = self.random.choice(list(TYPES))
            self.emit(depth, f"*(volatile {name}*)({self.buffer()} + {self.place(indices, TYPES[name])}) "
                             f"{self.operation()}= {self.value(indices)};")
        elif kind == 3 and self.exits:
            self.emit(depth, f"if ({self.cell(indices)} == {self.number(0, 40)}) goto {self.exits[-1]};")
        elif depth < 3:
            self.narrow_loop(depth, indices)

    def gap(self, indices):
        return f"((struct Gap*)({self.buffer()} + {self.place(indices, 1)}))->x"

    def narrow_loop(self, depth, indices):
        """The counter wraps, and ends where it began."""
        self.loops += 1
        index = f"i{self.loops}"
        self.emit(depth, f"{{ const uint8_t begin{index} = (uint8_t){self.variable()}; uint8_t {index} = begin{index};")
        self.emit(depth, "do {")
        self.block(depth + 1, indices + [index])
        self.emit(depth + 1, f"{index} += {self.pick(8, 24, 136, 255 if depth == 1 else 240)};")
        self.emit(depth, f"}} while ({index} != begin{index}); }}")

    def loop(self, depth, indices):
        self.loops += 1
        index = f"i{self.loops}"
        if self.shapes and depth == 1:
            self.exits.append(f"behind{index}")
        end = self.pick(str(self.number(1, 30)), str(self.number(100, 999)) if depth == 1 else "20",
                        f"{self.variable()} % {900 if depth == 1 else 40}")
        self.emit(depth, f"{{ const uint64_t end{index} = {end};")
        if self.number(0, 3):
            self.emit(depth, f"for (uint64_t {index} = 0; {index} < end{index}; {index} += {self.pick(1, 1, 1, 2, 3)}) {{")
        else:
            self.emit(depth, f"for (uint64_t {index} = end{index}; {index}-- > 0;) {{")
        if self.number(0, 1):  # what vectorisers and loop splitting like
            name = self.pick("uint8_t", "uint32_t", "uint64_t")
            one, two = self.random.sample(["a", "b", "c"], 2)
            at = self.number(0, 9)
            self.emit(depth + 1, f"(({name}*){one})[{index} + {at}] {self.operation()}= (({name}*){two})[{index}];")
            if self.number(0, 1):
                self.emit(depth + 1, f"{self.variable()} += (({name}*){two})[{index} + {at}];")
        else:
            self.block(depth + 1, indices + [index])
        if self.number(0, 4) == 0:
            self.emit(depth + 1, f"if ({self.cell(indices + [index])} == 7) break;")
        self.emit(depth, "} }")
        if self.shapes and depth == 1:
            self.emit(depth, f"{self.exits.pop()}:;")

    def walk(self, depth, indices):
        """A loop that ends when it finds something: pointers go on, by more than one way, and something stays."""
        self.loops += 1
        name = self.random.choice(list(TYPES))
        p, q, end = f"p{self.loops}", f"q{self.loops}", f"end{self.loops}"
        self.emit(depth, f"{{ {name}* {p} = ({name}*)({self.buffer()} + {self.place(indices, TYPES[name])});")
        self.emit(depth + 1, f"{name}* {end} = {p} + {self.pick(7, 60, 140)}; uint32_t* {q} = &{self.cell32(indices)};")
        self.emit(depth, f"while ({p} < {end} && *{p} != ({name}){self.value(indices)}) {{")
        for _ in range(self.number(1, 4)):
            choices = (
                f"{self.variable()} += *{p};", f"*{p} ^= {self.variable()};", f"++*{q};",
                f"if ({self.variable()} & 3) {p} += {self.number(1, 3)};",
                f"if (!({self.variable()} & 15)) {self.variable()} = bump({self.variable()});",
                f"if (*{p} & 1) {self.variable()} ^= {self.cell(indices)};",
                f"for (int k = 0; k < 3 && {p}[k] & 1; ++k) {{ *{q} += {p}[k]; }}",
                f"{self.variable()} += {q}[{self.variable()} & 7];")
            if self.objects:  # members of what stays, of which some are used more often than those before them
                choices += (
                    f"if ({self.variable()} & 1) ++{q}[{self.number(0, 15)}];", f"{q}[{self.number(0, 15)}] += {self.variable()};",
                    f"if ({self.variable()} & 7) {self.variable()} ^= {q}[{self.number(0, 15)}];")
            self.emit(depth + 1, self.pick(*choices))
        self.emit(depth + 1, f"++{p};")
        self.emit(depth, "} }")

    def cell32(self, indices):
        return f"*(uint32_t*)({self.buffer()} + {self.place(indices, 4)})"

    def block(self, depth, indices):
        for _ in range(self.number(1, 5)):
            self.statement(depth, indices)

    def function(self, name):
        self.emit(0, f"__attribute__((noinline)) static uint64_t {name}(uint8_t* {self.pick('', 'restrict ')}a, "
                     "uint8_t* b, uint8_t* c, uint64_t v0) {")
        self.emit(1, "uint64_t v1 = v0 * 3, v2 = 5, v3 = v0 >> 7, v4 = 1;")
        for _ in range(self.number(4, 10)):
            self.statement(1, [])
        self.loop(1, [])
        self.emit(1, "return v0 ^ v1 ^ v2 ^ v3 ^ v4;")
        self.emit(0, "}")

    def text(self):
        functions = [f"f{k}" for k in range(self.number(4, 8))]
        for name in functions:
            self.function(name)
        calls = "\n".join(f"    sum = sum * 31 + {name}(a, b, c, sum);" for name in functions)
        return f"""#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct __attribute__((packed)) Odd {{ uint8_t gap; uint32_t x, y; }};
struct __attribute__((packed)) Gap {{ uint8_t gap; unsigned __int128 x; }};
struct S {{ uint32_t count; uint16_t half, tag; uint64_t wide[4]; struct Odd odd; }};
__attribute__((noinline)) static uint64_t bump(uint64_t v) {{ return v * 6364136223846793005ull + 1; }}
{chr(10).join(self.lines)}
int main(void) {{
  uint8_t* a = malloc({BYTES}); uint8_t* b = malloc({BYTES} + 200); uint8_t* c = malloc({BYTES} + 8);
  uint64_t sum = {self.number(1, 1 << 30)};
  for (int i = 0; i < {BYTES}; ++i) a[i] = i * 7, b[i] = i * 13 >> 3, c[i] = i * i >> 5;
  for (int round = 0; round < 4; ++round) {{
{calls}
  }}
  for (int i = 0; i < {BYTES}; ++i) sum = (sum ^ a[i] ^ (uint64_t)b[i] << 8 ^ (uint64_t)c[i] << 16) * 1099511628211ull;
  printf("%016llx\\n", (unsigned long long)sum);
  return 0;
}}
"""


print(Program(int(sys.argv[1])).text())
