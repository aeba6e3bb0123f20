// Flushes and fences in all forms that programs have, stores of all kinds that C has, and what else orders flushes.
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "region.h"

enum { kRounds = 100 };

struct record {
  uint64_t key;
  char name[40];
  double weights[30];
};

__attribute__((target("clwb,clflushopt"))) static void flush_by_intrinsics(char* line) {
  _mm_clwb(line);
  _mm_clflushopt(line);
  expected.flushes += 2;
  _mm_clflush(line);
  expected.flushes_ordered += 1;
  _mm_sfence();
  expected.fences += 1;
}

static void flush_by_assembly(char* line) {
  __asm__ volatile("clwb %0" : "+m"(*(volatile char*)line));
  __asm__ volatile("clwb (%0)" : : "r"(line) : "memory");
  __asm__ volatile(".byte 0x66; clflush %0" : "+m"(*(volatile char*)line));
  __asm__ volatile(".byte 0x66; xsaveopt %0" : "+m"(*(volatile char*)line));
  __asm__ volatile("clflushopt %[line]\n" : [line] "+m"(*(char(*)[64])line));
  expected.flushes += 5;
  __asm__ volatile("clflush %0" : : "m"(*line));
  __asm__("clflush %a0" : : "r"(line) : "memory");
  expected.flushes_ordered += 2;
  __asm__ volatile("sfence" : : : "memory");
  expected.fences += 1;
  __asm__ volatile(
      "clwb (%0)   # the first\n\t"
      "clwb (%1)\n\t"
      "sfence"
      :
      : "r"(line), "r"((uint64_t)line + kLineBytes)
      : "memory");
  expected.flushes += 2;
  expected.fences += 1;
}

static void flush_later(char* line) {
  __asm__ volatile("clwb %0" : "+m"(*(volatile char*)line));
  ++expected.flushes;
  ++expected.ordered;
}

// Each flush is executed by what comes next, which is no sfence.
static void flush_and_order(char* line) {
  static _Atomic unsigned counter;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  unsigned wanted = 0, one = 1;
  flush_later(line);
  _mm_mfence();
  _mm_mfence();  // nothing left to do
  flush_later(line);
  atomic_thread_fence(memory_order_seq_cst);
  flush_later(line);
  atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
  flush_later(line);
  atomic_compare_exchange_strong(&counter, &wanted, 1);
  flush_later(line);
  atomic_store(&counter, 1);
  flush_later(line);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  flush_later(line);
  __asm__ volatile("lock; addl %1, %0" : "+m"(counter) : "r"(one));
  flush_later(line);
  __asm__ volatile("clwb %0\n\tmfence" : "+m"(*(volatile char*)line));
  ++expected.flushes;
  flush_later(line);
  // Stays as it is: three instructions of which one is none of ours.
  __asm__ volatile("clwb (%0); sfence; nop" : : "r"(line) : "memory");
  // None of these orders anything.
  atomic_store_explicit(&counter, 2, memory_order_release);
  atomic_thread_fence(memory_order_acq_rel);
  atomic_signal_fence(memory_order_seq_cst);
  __asm__ volatile("" : : : "memory");
}

static void store(char* at, int round) {
  struct record one = {.key = (uint64_t)round, .name = "one"};
  for (int i = 0; i < 30; ++i) one.weights[i] = round * 0.5 + i;
  struct record* records = (struct record*)at;
  records[0] = one;
  records[1].key = records[0].key * 3;
  strcpy(records[1].name, "the name");
  strcat(records[1].name, " and more");
  strncpy(records[2].name, "padded", sizeof records[2].name);
  stpcpy(records[3].name, records[1].name);
  memcpy(records + 4, records, (size_t)(round % 3) * sizeof one);
  memmove(records + 5, records + 4, sizeof one);
  memset(records + 8, round, (size_t)round);
  for (int i = 0; i < 30; ++i) records[1].weights[i] = records[0].weights[i] + 1;
  // One of three, so that some compilers mask.
  for (int i = 0; i < 30; ++i)
    if (records[0].weights[i] > 20) records[2].weights[i] = records[1].weights[i];
  long long* longs = (long long*)(records + 10);
  _mm_stream_si64(longs, round);
  _mm_stream_si128((__m128i*)(((uintptr_t)longs + 31) & ~(uintptr_t)15), _mm_set1_epi32(round));
  __asm__ volatile("movnti %1, %0" : "=m"(longs[10]) : "r"((long long)round));
  _Atomic int* atomics = (_Atomic int*)(longs + 12);
  atomic_fetch_add(atomics, round);
  int wanted = 7;
  atomic_compare_exchange_strong(atomics + 1, &wanted, 8);
  wanted = atomics[1];
  atomic_compare_exchange_strong(atomics + 1, &wanted, round);
  atomic_store(atomics + 2, round);
}

int main(void) {
  map_region();
  for (int round = 0; round < kRounds; ++round) {
    char* line = REGION + round * 2 * kLineBytes;
    flush_by_intrinsics(line);
    flush_by_assembly(line);
    flush_and_order(line);
    store(REGION + 65536 + round * 8192, round);
  }
  print_region();
  return 0;
}
