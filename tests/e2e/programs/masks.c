// Instructions of AVX-512 on spilled memory, at every distance from the end of a page: under masks that switch off the
// lanes that would lie in memory that is not there, compressed and expanded, gathered and scattered by indices of 32
// and 64 bits, conflicting lanes, streaming stores, loads that repeat one element.
// levels: O0 O2 O3 avx512
// flags: -march=x86-64-v4
// needs: avx512f avx512bw avx512vl avx512dq
// chaos: 2
// expect: cache.evictions>=100
#include <immintrin.h>
#include <sys/mman.h>

#include "e2e.h"

#define NOINLINE __attribute__((noinline))
enum { kPages = 400, kPage = 4096 };
static uint64_t state = 11, sum = 0;

static void add(const void* data, size_t n) {
  for (size_t i = 0; i < n; ++i) sum = (sum ^ ((const unsigned char*)data)[i]) * 1099511628211u;
}

// Memory whose neighbours are not there: the first and the last page of a mapping of its own, and the heap.
static char* edge;
static size_t edge_bytes;

#define FORCE(x) __asm__ volatile("" : "+x"(x))

NOINLINE static void masked(char* p, uint64_t mask) {
  __m512i a = _mm512_maskz_loadu_epi8(mask, p);
  add(&a, 64);
  __m512i b = _mm512_mask_loadu_epi16(a, (__mmask32)mask, p);
  add(&b, 64);
  __m512i c = _mm512_mask_loadu_epi32(b, (__mmask16)mask, p);
  __m512d d = _mm512_mask_loadu_pd(_mm512_castsi512_pd(c), (__mmask8)mask, p);
  add(&d, 64);
  __m256i e = _mm256_maskz_loadu_epi64((__mmask8)mask & 15, p);
  __m128 f = _mm_maskz_loadu_ps((__mmask8)mask & 15, p);
  add(&e, 32), add(&f, 16);
  _mm512_mask_storeu_epi8(p, mask, _mm512_add_epi8(a, _mm512_set1_epi8(3)));
  _mm512_mask_storeu_epi16(p, (__mmask32)mask, _mm512_add_epi16(b, _mm512_set1_epi16(5)));
  _mm512_mask_storeu_ps(p, (__mmask16)mask, _mm512_castsi512_ps(c));
  _mm512_mask_storeu_epi64(p, (__mmask8)mask, _mm512_castpd_si512(d));
  _mm256_mask_storeu_epi32(p, (__mmask8)mask, e);
  _mm_mask_storeu_pd(p, (__mmask8)mask & 3, _mm_castps_pd(f));
  // One element, by its own width.
  __m128d g = _mm_mask_load_sd(_mm_set1_pd(2), (__mmask8)mask & 1, (double*)p);
  _mm_mask_store_ss((float*)p, (__mmask8)mask & 1, _mm_castpd_ps(g));
  add(&g, 16);
  // The older ones, whose masks are signs.
  __m256i signs = _mm256_movm_epi32((__mmask8)mask);
  __m256 h = _mm256_maskload_ps((float*)p, signs);
  add(&h, 32);
  _mm256_maskstore_ps((float*)p, signs, h);
}

NOINLINE static void packed(char* p, uint64_t mask) {
  __m512i a = _mm512_maskz_expandloadu_epi32((__mmask16)mask, p);
  __m512i b = _mm512_mask_expandloadu_epi64(a, (__mmask8)mask, p);
  __m256d c = _mm256_maskz_expandloadu_pd((__mmask8)mask & 15, p);
  add(&a, 64), add(&b, 64), add(&c, 32);
  _mm512_mask_compressstoreu_epi32(p, (__mmask16)mask, _mm512_add_epi32(a, _mm512_set1_epi32(9)));
  _mm512_mask_compressstoreu_pd(p, (__mmask8)mask, _mm512_castsi512_pd(b));
  _mm256_mask_compressstoreu_epi64(p, (__mmask8)mask & 15, _mm256_castpd_si256(c));
}

// Truncating and saturating stores, and loads that widen.
NOINLINE static void narrow(char* p, uint64_t mask) {
  __m512i a = _mm512_maskz_cvtepu8_epi64((__mmask8)mask, _mm_maskz_loadu_epi8((__mmask16)mask & 255, p));
  add(&a, 64);
  _mm512_mask_cvtepi64_storeu_epi8(p, (__mmask8)mask, _mm512_add_epi64(a, a));
  _mm512_mask_cvtusepi32_storeu_epi16(p, (__mmask16)mask & 15, a);
}

NOINLINE static void broadcast(char* p) {
  __m512i a = _mm512_broadcast_i32x4(_mm_loadu_si128((__m128i*)p));
  __m512 b = _mm512_set1_ps(*(float*)p);
  __m256d c = _mm256_broadcast_sd((double*)p);
  __m512i d = _mm512_add_epi64(a, _mm512_set1_epi64(*(int64_t*)p));
  d = _mm512_xor_epi64(d, _mm512_broadcast_i64x4(_mm256_lddqu_si256((__m256i*)p)));
  d = _mm512_sub_epi64(d, _mm512_broadcast_i32x4(_mm_lddqu_si128((__m128i*)p)));
  add(&b, 64), add(&c, 32), add(&d, 64);
}

NOINLINE static void indexed(char* base, const uint32_t* index, uint64_t mask) {
  __m512i low = _mm512_loadu_si512(index);
  __m512i a = _mm512_i32gather_epi32(low, base, 4);
  __m512i b = _mm512_mask_i32gather_epi32(a, (__mmask16)mask, low, base, 2);
  __m512d c = _mm512_i32gather_pd(_mm512_castsi512_si256(low), base, 8);
  __m512i wide = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(low));
  __m512i d = _mm512_mask_i64gather_epi64(wide, (__mmask8)mask, wide, base, 1);
  __m256i e = _mm256_i64gather_epi64((long long*)base, _mm512_castsi512_si256(wide), 8);
  __m128 f = _mm_i32gather_ps((float*)base, _mm512_castsi512_si128(low), 4);
  add(&a, 64), add(&b, 64), add(&c, 64), add(&d, 64), add(&e, 32), add(&f, 16);
  _mm512_mask_i32scatter_epi32(base, (__mmask16)mask, low, _mm512_add_epi32(a, b), 4);
  _mm512_i64scatter_pd(base, wide, c, 8);
  _mm512_mask_i64scatter_epi32(base, (__mmask8)mask, wide, _mm512_castsi512_si256(b), 4);
  __m512i conflicts = _mm512_conflict_epi32(low);
  add(&conflicts, 64);
}

// Lanes that are off have indices that lead nowhere.
NOINLINE static void astray(char* base, uint64_t mask) {
  uint64_t index[8];
  for (int i = 0; i < 8; ++i)
    index[i] = mask >> i & 1 ? next_random(&state) % (kPages * kPage - 8) : next_random(&state) | 1ull << 62;
  __m512i lanes = _mm512_loadu_si512(index);
  __m512i a = _mm512_mask_i64gather_epi64(lanes, (__mmask8)mask, lanes, base, 1);
  for (int i = 0; i < 8; ++i)
    if (mask >> i & 1) add((char*)&a + 8 * i, 8);
  _mm512_mask_i64scatter_epi64(base, (__mmask8)mask, lanes, _mm512_add_epi64(a, a), 1);
}

NOINLINE static void streams(char* p) {
  p = (char*)((uint64_t)p & ~63ull);
  __m512i a = _mm512_stream_load_si512(p);
  add(&a, 64);
  _mm512_stream_si512((void*)p, _mm512_add_epi32(a, _mm512_set1_epi32(1)));
  _mm256_stream_pd((double*)(p + 32), _mm256_set1_pd(1.5));
  _mm_stream_si64((long long*)(p + 8), 77);
  _mm_stream_si32((int*)(p + 4), 78);
  _mm_sfence();
  _mm_prefetch(p + 4096 * 100000, _MM_HINT_T0);
  _mm_maskmoveu_si128(_mm512_castsi512_si128(a), _mm512_castsi512_si128(a), p + 16);
}

// Masks by the compiler: loops with conditions, whose last lanes are off.
NOINLINE static void loops(const int32_t* restrict from, const uint8_t* restrict on, int32_t* restrict to,
                           int32_t* restrict dense, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (on[i]) to[i] = from[i] * 3 + 1;
  size_t filled = 0;
  for (size_t i = 0; i < n; ++i)
    if (from[i] & 1) dense[filled++] = from[i];
  for (size_t i = 0; i < n; ++i) to[i] ^= dense[to[i] & 63];
}

static uint64_t some_mask(void) {
  const uint64_t random = next_random(&state);
  switch (random % 5) {
    case 0: return 0;
    case 1: return ~0ull;
    case 2: return next_random(&state);
    case 3: return 1ull << (random >> 8) % 64;
    default: return next_random(&state) & next_random(&state) & next_random(&state);
  }
}

int main(void) {
  char* memory = aligned_alloc(kPage, (kPages + 16) * kPage);
  CHECK_SPILLED(memory);
  for (size_t i = 0; i < (kPages + 16) * kPage; ++i) memory[i] = (char)(i * 31 >> 4);
  // What ends with its mapping: masks that stay inside are given for it.
  edge_bytes = 128 << 10;
  char* room = mmap(NULL, edge_bytes + 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(room != MAP_FAILED);
  CHECK_SPILLED(room);
  edge = room;
  CHECK(munmap(room + edge_bytes, 3 * kPage) == 0);
  for (size_t i = 0; i < edge_bytes; ++i) edge[i] = (char)i;
  for (int distance = 1; distance < 64; ++distance) {
    // `distance` bytes are there. Elements of 8 bytes decide, since each mask is used for all widths.
    const uint64_t mask = some_mask() & (distance >= 8 ? (1ull << distance / 8) - 1 : 0);
    char* p = edge + edge_bytes - distance;
    masked(p, mask);
    packed(p, mask & 0xff);
    // Before the first byte.
    __m512i a = _mm512_maskz_loadu_epi8(~0ull << distance, edge - distance);
    add(&a, 64);
    _mm512_mask_storeu_epi8(edge - distance, ~0ull << distance, _mm512_add_epi8(a, a));
  }
  for (int round = 0; round < 1500; ++round) {
    const uint64_t random = next_random(&state);
    char* p = memory + random % kPages * kPage +
              (round % 3 ? kPage - random / kPages % 80 : random / kPages % 4000);
    masked(p, some_mask());
    packed(p, some_mask());
    narrow(p, some_mask());
    broadcast(p);
    uint32_t index[16];
    for (int i = 0; i < 16; ++i)
      index[i] = (uint32_t)(round % 4 == 0   ? next_random(&state) % (kPages * kPage / 8)
                            : round % 4 == 1 ? next_random(&state) % 64
                            : round % 4 == 2 ? (random % (kPages * 512 - 70)) + (uint32_t)i
                                             : 510 + (uint32_t)i % 5);
    indexed(memory, index, some_mask());
    astray(memory, some_mask());
    streams(p);
  }
  int32_t* dense = malloc(400000 * sizeof *dense);
  for (size_t n = 100000; n > 99000; n -= 97) {
    memset(dense, 1, 4096);
    loops((int32_t*)(memory + n % 64), (uint8_t*)memory + 700000, (int32_t*)(memory + 800000 + n % 32), dense,
          n);
    add(dense, 4096);
  }
  add(memory, kPages * kPage);
  add(edge, edge_bytes);
  printf("%016llx\n", (unsigned long long)sum);
  return 0;
}
