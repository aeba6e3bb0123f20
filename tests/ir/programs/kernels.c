// Loops and accesses of every shape over heap memory, at random places relative to page edges. Prints a
// checksum per kernel.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

static uint64_t state = 0x9e3779b97f4a7c15ull;
static uint64_t random_u64(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

enum { kBytes = 40000 };

struct __attribute__((packed)) Packed {
  char tag;
  int32_t word;
  double real;
  uint16_t half;
};
struct Odd {
  int32_t x;
  float y;
  double z;
  int16_t v[5];
  struct Odd* next;
};
struct Large {
  char bytes[700];
};

NOINLINE uint64_t sum_bytes(const uint8_t* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) s += p[i];
  return s;
}
NOINLINE void triad(double* restrict a, const double* restrict b, const double* restrict c, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
}
NOINLINE void add_in_place(int32_t* a, const int32_t* b, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i] += b[i];
}
NOINLINE uint64_t strided(const uint32_t* p, size_t n, size_t step) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; i += step) s = s * 31 + p[i];
  return s;
}
NOINLINE uint64_t constant_stride(const uint32_t* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i + 7 < n; i += 7) s = s * 31 + p[i] + p[i + 3];
  return s;
}
NOINLINE uint64_t huge_stride(const uint8_t* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i + 8 <= n; i += 4093) {
    uint64_t v;
    memcpy(&v, p + i, 8);
    s = s * 31 + v;
  }
  return s;
}
NOINLINE void reverse(uint16_t* p, size_t n) {
  for (size_t i = 0, j = n - 1; i < j; ++i, --j) {
    uint16_t t = p[i];
    p[i] = p[j];
    p[j] = t;
  }
}
NOINLINE uint64_t backwards(const uint64_t* p, ptrdiff_t n) {
  uint64_t s = 0;
  for (ptrdiff_t i = n - 1; i >= 0; --i) s = (s << 1 | s >> 63) ^ p[i];
  return s;
}
NOINLINE size_t find(const uint8_t* p, size_t n, uint8_t byte) {
  size_t i = 0;
  while (i < n && p[i] != byte) ++i;
  return i;
}
NOINLINE size_t two_exits(const int32_t* p, const int32_t* q, size_t n) {
  size_t i;
  for (i = 0; i < n; ++i) {
    if (p[i] == 77) break;
    if (q[i] == 78) return i + 1000000;
  }
  return i;
}
NOINLINE uint64_t conditional(const uint32_t* p, const uint32_t* q, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i)
    if (p[i] & 1) s += q[i];
  return s;
}
NOINLINE void conditional_store(uint32_t* p, const uint32_t* q, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (q[i] % 3 == 0) p[i] = q[i];
}
NOINLINE uint64_t gather(const uint32_t* p, const uint32_t* index, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) s += p[index[i]];
  return s;
}
NOINLINE void scatter(uint32_t* p, const uint32_t* index, size_t n) {
  for (size_t i = 0; i < n; ++i) p[index[i]] = (uint32_t)i;
}
// Rows of a compressed matrix or graph, short ones as a rule.
NOINLINE uint64_t rows(uint64_t* sums, const uint64_t* offsets, const uint32_t* ends, const uint32_t* values,
                       size_t n) {
  uint64_t all = 0;
  for (size_t v = 0; v < n; ++v) {
    uint64_t s = 0;
    for (uint64_t e = offsets[v]; e < offsets[v + 1]; ++e) s += values[ends[e]];
    sums[v] = s;
    all = all * 3 + s;
  }
  return all;
}
NOINLINE uint64_t rows_until(uint32_t* depths, const uint64_t* offsets, const uint32_t* ends, size_t n) {
  uint64_t found = 0;
  for (size_t v = 0; v < n; ++v) {
    if (depths[v] & 1) continue;
    for (uint64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
      if ((depths[ends[e]] & 6) != 2) continue;
      depths[v] |= 1;
      found += ends[e];
      break;
    }
  }
  return found;
}
NOINLINE size_t compress(uint32_t* out, const uint32_t* in, size_t n) {
  size_t k = 0;
  for (size_t i = 0; i < n; ++i)
    if (in[i] & 2) out[k++] = in[i];
  return k;
}
NOINLINE uint64_t unaligned(const struct Packed* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits;
    double real = p[i].real;
    memcpy(&bits, &real, 8);
    s = s * 7 + (uint64_t)p[i].tag + (uint64_t)p[i].word + p[i].half + bits;
  }
  return s;
}
NOINLINE void fill_packed(struct Packed* p, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    p[i].tag = (char)i;
    p[i].word = (int32_t)(i * 2654435761u);
    p[i].real = (double)i * 0.5;
    p[i].half = (uint16_t)(i * 7);
  }
}
NOINLINE void copy_structs(struct Odd* to, const struct Odd* from, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = from[n - 1 - i];
}
NOINLINE uint64_t fields(struct Odd* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    p[i].x += (int)i;
    p[i].y = (float)p[i].x * 0.25f;
    p[i].z += p[i].y;
    for (int k = 0; k < 5; ++k) p[i].v[k] = (int16_t)(p[i].v[k] + k);
    s = s * 3 + (uint64_t)p[i].x + (uint64_t)p[i].z + (uint64_t)p[i].v[3];
  }
  return s;
}
NOINLINE uint64_t chase(struct Odd* p) {
  uint64_t s = 0;
  for (; p; p = p->next) {
    s = s * 5 + (uint32_t)p->x;
    p->v[1] ^= p->v[2];
    if (p->x == 123) p->z += 1;
  }
  return s;
}
NOINLINE void large_copy(struct Large* a, const struct Large* b) { *a = *b; }
NOINLINE struct Large by_value(struct Large a) {
  a.bytes[5] ^= 3;
  return a;
}
NOINLINE void matrix(float* c, const float* a, const float* b, int n) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      float s = 0;
      for (int k = 0; k < n; ++k) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
NOINLINE void stencil(int64_t* out, const int64_t* in, size_t n) {
  for (size_t i = 1; i + 1 < n; ++i) out[i] = in[i - 1] - 2 * in[i] + in[i + 1];
}
NOINLINE void histogram(uint32_t* counts, const uint8_t* p, size_t n) {
  for (size_t i = 0; i < n; ++i) counts[p[i]]++;
}
NOINLINE void accumulate(uint64_t* total, const uint32_t* p, size_t n) {
  for (size_t i = 0; i < n; ++i) *total += p[i];
}
NOINLINE void insertion_sort(int32_t* p, size_t n) {
  for (size_t i = 1; i < n; ++i) {
    int32_t v = p[i];
    size_t j = i;
    while (j > 0 && p[j - 1] > v) {
      p[j] = p[j - 1];
      --j;
    }
    p[j] = v;
  }
}
NOINLINE void overlapping(uint8_t* p, size_t n, size_t shift) {
  for (size_t i = 0; i + shift < n; ++i) p[i + shift] = (uint8_t)(p[i] + 1);
}
NOINLINE long long_double(long double* p, size_t n) {
  long double s = 0;
  for (size_t i = 0; i < n; ++i) {
    p[i] = (long double)i / 3;
    s += p[i] * 2;
  }
  return (long)s;
}
NOINLINE int leaf(int v) { return v * 3 + 1; }
NOINLINE uint64_t calls_between(struct Odd* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    s += (uint64_t)p[i].x;
    p[i].x = leaf(p[i].x);
    s ^= (uint64_t)p[i].x;
    p[i].v[0] = (int16_t)(p[i].v[4] + p[i].v[0]);
  }
  return s;
}
NOINLINE uint64_t pointer_walk(const uint32_t* p, const uint32_t* end) {
  uint64_t s = 1;
  while (p != end) s = s * 17 + *p++;
  return s;
}
NOINLINE uint64_t bits(uint64_t* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i >> 6] |= 1ull << (i * 5 & 63);
  return p[0];
}
struct Fields {
  unsigned a : 3, b : 11, c : 18;
  unsigned long long d : 41;
};
NOINLINE uint64_t bit_fields(struct Fields* p, size_t n) {
  uint64_t s = 0;
  for (size_t i = 0; i < n; ++i) {
    p[i].b = (unsigned)i;
    p[i].d = p[i].b * 77ull + p[i].a;
    s += p[i].c + p[i].d;
  }
  return s;
}

static uint64_t checksum(const uint8_t* p, size_t n) {
  uint64_t h = 14695981039346656037ull;
  for (size_t i = 0; i < n; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}

static void fill(uint8_t* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = (uint8_t)(random_u64() >> 24);
}

int main(void) {
  uint8_t* a = malloc(kBytes + 64);
  uint8_t* b = malloc(kBytes + 64);
  uint8_t* c = malloc(kBytes + 64);
  uint8_t* d = malloc(kBytes + 64);
  uint64_t all = 0;
#define SHOW(name, value) printf("%d %s %016llx\n", round, name, (unsigned long long)(value))
  for (int round = 0; round < 6; ++round) {
    size_t shift = random_u64() % 4096;
    size_t n = 20000 + random_u64() % 8000;
    fill(a, kBytes);
    fill(b, kBytes);
    fill(c, kBytes);
    uint8_t *p = a + shift, *q = b + random_u64() % 4096, *r = c + random_u64() % 4096;
    SHOW("sum_bytes", sum_bytes(p, n));
    SHOW("find", find(p, n, 255) * 3 + find(q, n, 254));
    overlapping(p, n, 1 + random_u64() % 20);
    SHOW("overlapping", checksum(a, kBytes));
    SHOW("huge_stride", huge_stride(p, n));
    fill_packed((struct Packed*)p, n / 15);
    SHOW("unaligned", unaligned((struct Packed*)p, n / 15));
    p = (uint8_t*)((uintptr_t)p & -8ul), q = (uint8_t*)((uintptr_t)q & -8ul),
    r = (uint8_t*)((uintptr_t)r & -8ul);
    size_t words = n / 4, longs = n / 8;
    triad((double*)p, (const double*)q, (const double*)r, 0);
    for (size_t i = 0; i < longs; ++i) ((double*)q)[i] = (double)i, ((double*)r)[i] = (double)(i * i % 97);
    triad((double*)p, (const double*)q, (const double*)r, longs);
    SHOW("triad", checksum(a, kBytes));
    fill(b, kBytes);
    fill(c, kBytes);
    add_in_place((int32_t*)p, (const int32_t*)q, words);
    SHOW("add_in_place", checksum(a, kBytes));
    SHOW("strided",
         strided((uint32_t*)p, words, 1 + random_u64() % 9) + constant_stride((uint32_t*)q, words));
    SHOW("strided far", strided((uint32_t*)p, words, 1000 + random_u64() % 100));
    reverse((uint16_t*)p, n / 2);
    SHOW("reverse", checksum(a, kBytes));
    SHOW("backwards", backwards((uint64_t*)p, (ptrdiff_t)longs));
    SHOW("two_exits", two_exits((int32_t*)p, (int32_t*)q, words));
    ((int32_t*)q)[words - 9] = 78;
    SHOW("two_exits", two_exits((int32_t*)p, (int32_t*)q, words));
    SHOW("conditional", conditional((uint32_t*)p, (uint32_t*)q, words));
    conditional_store((uint32_t*)p, (uint32_t*)q, words);
    SHOW("conditional_store", checksum(a, kBytes));
    for (size_t i = 0; i < words; ++i) ((uint32_t*)r)[i] = (uint32_t)(random_u64() % words);
    SHOW("gather", gather((uint32_t*)p, (uint32_t*)r, words));
    scatter((uint32_t*)q, (uint32_t*)r, words);
    SHOW("scatter", checksum(b, kBytes));
    uint64_t* offsets = (uint64_t*)(d + (shift & -8ul));
    size_t row_count = 0, entries = 0;
    for (offsets[0] = 0; entries < words && row_count < 1900; offsets[++row_count] = entries)
      if ((entries += random_u64() % (row_count % 100 == 7 ? 900 : 9)) > words) entries = words;
    SHOW("rows", rows((uint64_t*)q, offsets, (uint32_t*)r, (uint32_t*)p, row_count) + checksum(b, kBytes));
    SHOW("rows_until", rows_until((uint32_t*)p, offsets, (uint32_t*)r, row_count) + checksum(a, kBytes));
    SHOW("compress", compress((uint32_t*)q, (uint32_t*)p, words) + checksum(b, kBytes));
    size_t odds = n / sizeof(struct Odd);
    struct Odd *o1 = (struct Odd*)p, *o2 = (struct Odd*)q;
    for (size_t i = 0; i < odds; ++i) {
      o1[i] = (struct Odd){(int)i, (float)i, (double)i * 2, {1, 2, 3, (int16_t)i, 5}, NULL};
      o1[i].next = NULL;
    }
    memset(q, 0, odds * sizeof(struct Odd));
    copy_structs(o2, o1, odds);
    SHOW("fields", fields(o2, odds));
    for (size_t i = 0; i + 1 < odds; ++i) o2[i].next = &o2[i + 1];
    SHOW("chase", chase(o2) + chase(o2 + odds / 2));
    SHOW("calls", calls_between(o2, odds));
    for (size_t i = 0; i < odds; ++i) o2[i].next = NULL, o1[i].next = NULL;
    large_copy((struct Large*)(a + shift), (struct Large*)(b + 4000));
    *(struct Large*)(a + 4096 * 2 + shift) = by_value(*(struct Large*)(a + shift));
    SHOW("large", checksum(a + shift, 700));
    for (size_t i = 0; i < 40 * 40; ++i) ((float*)q)[i] = (float)(i % 13), ((float*)r)[i] = (float)(i % 7);
    matrix((float*)p, (float*)q, (float*)r, 40);
    SHOW("matrix", checksum(p, 40 * 40 * 4));
    fill(b, kBytes);
    stencil((int64_t*)p, (int64_t*)q, longs);
    SHOW("stencil", checksum(p, n));
    memset(r, 0, 2048);
    histogram((uint32_t*)r, q, n);
    SHOW("histogram", checksum(r, 1024));
    accumulate((uint64_t*)r, (uint32_t*)q, words);
    accumulate((uint64_t*)q + 5, (uint32_t*)q, words);
    SHOW("accumulate", *(uint64_t*)r + *((uint64_t*)q + 5));
    insertion_sort((int32_t*)q, 1500);
    SHOW("insertion_sort", checksum(q, 6000));
    long double* ld = (long double*)(((uintptr_t)r + 15) & -16ul);
    SHOW("long_double", long_double(ld, 1000));
    SHOW("pointer_walk", pointer_walk((uint32_t*)p, (uint32_t*)p + words));
    SHOW("bits", bits((uint64_t*)p, n) + checksum(p, n));
    memset(q, 0x5a, n);
    SHOW("bit_fields", bit_fields((struct Fields*)q, n / sizeof(struct Fields)) + checksum(q, n));
    all ^= checksum(q, n);
  }
  printf("%016llx\n", (unsigned long long)all);
  free(a);
  free(b);
  free(c);
  free(d);
  return 0;
}
