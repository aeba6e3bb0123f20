// A runtime just large enough to run what the compiler emits, without a cache below it. Not for users.
//
// SPILL_TEST_RESIDENT unset: everything is plain memory (identity entries).
// SPILL_TEST_RESIDENT=N: the heap lies in the spill range, N of its pages are resident in frames. Strict:
//   - frames have an inaccessible page on either side: an access past a page's edge ends the program
//   - a slow path releases the slots that are not in its mask, then moves out pages that no slot protects:
//     a stale translation ends the program. A look ahead releases nothing, and moves out pages as well
//   - code that was not compiled by spillcc gets pages mapped at their own address, and is counted
// SPILL_TEST_NATIVE=N: native bodies run until the byte that allows it was read N times, "always" without end;
//   their memory is at its own address until then, and inaccessible from then on. Unset: they never run.
// One thread.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE ((volatile int64_t*)0x70000000)
#define TABLE_BYTES (1ull << 38)
#define SLOTS ((volatile uint64_t*)0x6ffff000)
#define NATIVE ((volatile char*)0x6fffd000)
#define RANGE_BEGIN 0x100000000000ull
#define POOL_BEGIN 0x300000000000ull
#define MAX_PAGES (1u << 18)
#define PAGE 4096ull
#define SLOT_COUNT 32

__thread uint64_t* __spillway_slots __attribute__((tls_model("initial-exec"))) = (uint64_t*)0x6ffff000;
const char __spillway_abi_table_v1 = 1;
// Of code that translates by software caches: its Direct cache is one line.
static struct {
  uint64_t begin;
  int64_t entry;
} line;
__thread struct {
  void* lines;
  uint64_t mask, page_bytes;
  void* satc;
} __spillway_satc __attribute__((tls_model("initial-exec"))) = {&line, 0, 4096, 0};
// No loop runs here.
void __spillway_begin_busy(void) {}
void __spillway_begin_busy_if(int result) { (void)result; }
void __spillway_end_busy(void) {}

static int memory = -1;
static unsigned resident_max;
static unsigned resident_count;
static uint32_t resident[4096];       // page numbers in the range
static uint32_t frame_of[MAX_PAGES];  // 0: none
static uint64_t heap_used;            // bytes of the range
static uint64_t seed = 88172645463325252ull;
static unsigned long faults, translations;
static unsigned long native_reads, native_reads_max;  // of the byte; max: the last of them finds it 0

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

static void die(const char* what, uint64_t address) {
  char line[160];
  int n = snprintf(line, sizeof line, "test runtime: %s at %#lx\n", what, (unsigned long)address);
  if (write(2, line, n) < 0) _exit(98);
  _exit(99);
}

static int in_range(uint64_t address) {
  return resident_max && address >= RANGE_BEGIN && address < RANGE_BEGIN + heap_used + PAGE;
}

static char* frame_address(uint32_t frame) { return (char*)(POOL_BEGIN + frame * 2 * PAGE); }

static int is_protected(uint32_t page) {
  for (int k = 0; k < SLOT_COUNT; ++k)
    if (SLOTS[k] >> 12 == (RANGE_BEGIN >> 12) + page) return 1;
  return 0;
}

static void evict(unsigned index) {
  uint32_t page = resident[index];
  if (line.begin == RANGE_BEGIN + page * PAGE) line.begin = 0;
  TABLE[(RANGE_BEGIN >> 12) + page] = next_random() & 1 ? 0 : -1;
  if (mmap(frame_address(frame_of[page]), PAGE, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    die("cannot evict", page);
  frame_of[page] = 0;
  resident[index] = resident[--resident_count];
}

static void make_room(void) {
  for (unsigned tries = 0; resident_count >= resident_max && tries < 200; ++tries) {
    unsigned index = next_random() % resident_count;
    if (!is_protected(resident[index])) evict(index);
  }
}

// Where the page of address is, loaded if need be.
static char* frame_for(uint64_t address) {
  uint32_t page = (address - RANGE_BEGIN) >> 12;
  if (!frame_of[page]) {
    make_room();
    uint32_t frame;
    do {
      frame = 1 + next_random() % (MAX_PAGES - 1);
      int taken = 0;
      for (unsigned i = 0; i < resident_count; ++i) taken |= frame_of[resident[i]] == frame;
      if (!taken) break;
    } while (1);
    if (mmap(frame_address(frame), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory,
             (off_t)page * PAGE) == MAP_FAILED)
      die("cannot load", address);
    frame_of[page] = frame;
    resident[resident_count++] = page;
  }
  TABLE[address >> 12] = (uint64_t)frame_address(frame_of[page]) - (address & -PAGE) + 1;
  return frame_address(frame_of[page]);
}

static void release_all_but(uint64_t live) {
  for (int k = 0; k < SLOT_COUNT; ++k)
    if (!(live >> k & 1)) SLOTS[k] = 0;
}

__attribute__((used)) int64_t test_translate(uint64_t address, uint64_t live) {
  ++translations;
  release_all_but(live);
  if (!in_range(address)) {
    if (address >> 47) die("translation of a wild address", address);
    TABLE[address >> 12] = 1;
    return 1;
  }
  if (!is_protected((address - RANGE_BEGIN) >> 12)) die("translation that no live slot protects", address);
  frame_for(address);
  return TABLE[address >> 12];
}

// By software caches: nothing but the page that is asked for need stay, and where few do nothing else does.
__attribute__((used)) int64_t test_satc_translate(uint64_t address) {
  ++translations;
  if (!in_range(address)) die("translation of an address outside", address);
  release_all_but(0);
  SLOTS[SLOT_COUNT - 1] = address;
  for (unsigned i = resident_max < 10 ? resident_count : 0; i-- > 0;)
    if (!is_protected(resident[i])) evict(i);
  frame_for(address);
  line.begin = address & -PAGE;
  line.entry = TABLE[address >> 12];
  return line.entry;
}

// Copies through frames page by page. Addresses outside the range are used as they are.
static void copy_pieces(char* buffer, uint64_t address, uint64_t size, int store) {
  while (size) {
    uint64_t room = PAGE - (address & (PAGE - 1));
    uint64_t piece = size < room ? size : room;
    char* at = in_range(address) ? frame_for(address) + (address & (PAGE - 1)) : (char*)address;
    if (store)
      memcpy(at, buffer, piece);
    else
      memcpy(buffer, at, piece);
    buffer += piece;
    address += piece;
    size -= piece;
  }
}

__attribute__((used)) int64_t test_cross_load(uint64_t address, uint64_t size, char* buffer, uint64_t live) {
  release_all_but(live);
  copy_pieces(buffer, address, size, 0);
  return 0;
}

__attribute__((used)) int64_t test_cross_store(uint64_t address, uint64_t size, char* buffer, uint64_t live) {
  release_all_but(live);
  copy_pieces(buffer, address, size, 1);
  return 0;
}

__attribute__((used)) int64_t test_cross_copy(uint64_t to, uint64_t from, uint64_t size, uint64_t live) {
  release_all_but(live);
  char buffer[256];
  if (size > sizeof buffer) die("large copy", to);
  copy_pieces(buffer, from, size, 0);
  copy_pieces(buffer, to, size, 1);
  return 0;
}

static void map_natively(uint64_t address) {
  uint64_t page = address & -PAGE;
  if (mmap((void*)page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory,
           (off_t)(page - RANGE_BEGIN)) == MAP_FAILED)
    die("cannot map natively", address);
}

__attribute__((used)) int64_t test_cross_map(uint64_t address, uint64_t size, uint64_t live) {
  release_all_but(live);
  if (in_range(address)) {
    map_natively(address);
    map_natively(address + size - 1);
  }
  return 1;
}

// ---- native bodies ----

static void allow(volatile void* page, int protection) {
  if (mprotect((void*)page, PAGE, protection)) die("cannot protect", (uint64_t)page);
}

static void end_native_bodies(void) {
  allow(NATIVE, PROT_READ | PROT_WRITE);
  *NATIVE = 0;
  if (resident_max && mmap((void*)RANGE_BEGIN, MAX_PAGES * PAGE, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    die("cannot make memory inaccessible", RANGE_BEGIN);
}

// Each read of the byte faults, and is then let through alone.
static void set_single_step(void* context, int on) {
  greg_t* flags = &((ucontext_t*)context)->uc_mcontext.gregs[REG_EFL];
  *flags = on ? *flags | 0x100 : *flags & ~0x100;
}

static void on_native_read(void* context) {
  if (++native_reads >= native_reads_max) return end_native_bodies();
  allow(NATIVE, PROT_READ);
  set_single_step(context, 1);
}

static void on_step(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number;
  (void)info;
  allow(NATIVE, PROT_NONE);
  set_single_step(context, 0);
}

static void start_native_bodies(void) {
  if (mmap((void*)NATIVE, PAGE, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
    die("cannot map", (uint64_t)NATIVE);
  const char* wanted = getenv("SPILL_TEST_NATIVE");
  if (!wanted || !strcmp(wanted, "0")) return;
  *NATIVE = 1;
  if (resident_max && mmap((void*)RANGE_BEGIN, MAX_PAGES * PAGE, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, memory, 0) == MAP_FAILED)
    die("cannot map natively", RANGE_BEGIN);
  if (!strcmp(wanted, "always")) return;
  native_reads_max = strtoul(wanted, NULL, 10);
  struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  allow(NATIVE, PROT_NONE);
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)signal_number;
  uint64_t address = (uint64_t)info->si_addr;
  if (address == (uint64_t)NATIVE) return on_native_read(context);
  if (!in_range(address)) die("access fault", address);
  ++faults;
  map_natively(address);
}

// Slow paths keep every register but r11, and rax where it is the result.
#define THUNK(symbol, target)                                                                             \
  __asm__(".globl " symbol "\n.type " symbol ",@function\n" symbol                                        \
          ":\n"                                                                                           \
          "push %rbp\nmov %rsp,%rbp\n"                                                                    \
          "push %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %rbx\n"        \
          "mov %rdx,%r10\nmov %rsp,%rbx\nsub $16384,%rsp\nand $-64,%rsp\n"                                \
          "xor %eax,%eax\n"                                                                               \
          "mov %rax,512(%rsp)\nmov %rax,520(%rsp)\nmov %rax,528(%rsp)\nmov %rax,536(%rsp)\n"              \
          "mov %rax,544(%rsp)\nmov %rax,552(%rsp)\nmov %rax,560(%rsp)\nmov %rax,568(%rsp)\n"              \
          "mov $-1,%eax\nmov $-1,%edx\nxsave64 (%rsp)\nmov %r10,%rdx\n"                                   \
          "call " target                                                                                  \
          "\n"                                                                                            \
          "mov %rax,%rcx\nmov $-1,%eax\nmov $-1,%edx\nxrstor64 (%rsp)\nmov %rcx,%rax\n"                   \
          "mov %rbx,%rsp\npop %rbx\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\n" \
          "pop %rbp\nret\n")
THUNK("__spillway_translate", "test_translate");
THUNK("__spillway_satc_translate", "test_satc_translate");
THUNK("__spillway_cross_load", "test_cross_load");
THUNK("__spillway_cross_store", "test_cross_store");
THUNK("__spillway_cross_copy", "test_cross_copy");
THUNK("__spillway_cross_map", "test_cross_map");

// ---- loops that look ahead: all the time, and further than there is anything ----

// Meanwhile others may evict what no slot protects. The slots themselves are compiled code's, and stay.
static void evict_one(void) {
  unsigned index = resident_count ? next_random() % resident_count : 0;
  if (resident_count && !is_protected(resident[index])) evict(index);
}

// What is loaded ahead is given at the end of a page of its own, with nothing behind it, that cannot be stored to.
const volatile uint64_t __spillway_look_ahead = 1;
static char *bounce_page, *bounce_source;
static const int64_t* looking_loop;
static uint64_t looking_left;
static int64_t looked_at;
static unsigned long looks;

static void map_bounce_page(void) {
  int file = memfd_create("spill-test-ahead", MFD_CLOEXEC);
  bounce_page = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bounce_source = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (ftruncate(file, PAGE) || bounce_page == MAP_FAILED || bounce_source == MAP_FAILED ||
      mmap(bounce_page, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
    die("cannot map what is loaded ahead", 0);
}

void* __spillway_look_ahead_begin(const int64_t* loop, uint64_t position, uint64_t left, uint64_t* pause) {
  (void)position;
  evict_one();
  if (looking_loop) die("a look ahead in another", (uint64_t)loop);
  if (loop[0] == 0) die("a loop that does not advance", (uint64_t)loop);
  if (!bounce_page) map_bounce_page();
  looking_loop = loop;
  looking_left = left;
  looked_at = -1;
  *pause = 1 + looks % 7;
  if (looks % 5 == 4) {
    ++looks;
    looking_loop = NULL;
    return NULL;
  }
  return &bounce_page;
}
int64_t __spillway_look_ahead_next(void* state) {
  (void)state;
  if (++looked_at < 20) return looked_at;
  looking_loop = NULL;
  return -1 - (int64_t)(looks % 9);
}
uint64_t __spillway_look_ahead_load(void* state, uint64_t address, uint64_t size, uint64_t bits) {
  (void)state;
  ++looks;
  if (!looking_loop) die("a load outside of a look ahead", address);
  if (!in_range(address))
    return (bits & 4) || ((bits & 1) && (uint64_t)looked_at < looking_left) ? address : 0;
  if ((address & (PAGE - 1)) + size > PAGE || TABLE[address >> 12] <= 1) return 0;
  memcpy(bounce_source + PAGE - size, (char*)address + TABLE[address >> 12] - 1, size);
  return (uint64_t)bounce_page + PAGE - size;
}
void __spillway_look_ahead_note(void* state, uint64_t address) {
  (void)state;
  ++looks;
  if (!looking_loop) die("an address outside of a look ahead", address);
}

// ---- heap: never frees, does not avoid page edges ----

static struct {
  uint64_t address, size;
} blocks[1 << 20];
static unsigned block_count;

static void* allocate(uint64_t alignment, uint64_t size) {
  if (!resident_max) return aligned_alloc(alignment, (size + alignment - 1) & -alignment);
  heap_used = (heap_used + alignment - 1) & -alignment;
  uint64_t address = RANGE_BEGIN + heap_used;
  heap_used += size ? size : 1;
  if (heap_used >= MAX_PAGES * PAGE || block_count == sizeof blocks / sizeof *blocks)
    die("heap full", address);
  blocks[block_count].address = address;
  blocks[block_count++].size = size;
  return (void*)address;
}

static uint64_t size_of(void* block) {
  unsigned low = 0, high = block_count;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (blocks[middle].address <= (uint64_t)block)
      low = middle;
    else
      high = middle;
  }
  return blocks[low].size;
}

void* __spill_malloc(size_t size) { return resident_max ? allocate(16, size) : malloc(size); }
void* __spill_calloc(size_t n, size_t size) {
  return resident_max ? allocate(16, n * size) : calloc(n, size);
}
void __spill_free(void* block) {
  if (!resident_max) free(block);
}
void* __spill_memmove(void* to, const void* from, size_t size);
void* __spill_realloc(void* block, size_t size) {
  if (!resident_max) return realloc(block, size);
  void* fresh = allocate(16, size);
  if (block) {
    uint64_t old = size_of(block);
    __spill_memmove(fresh, block, old < size ? old : size);
  }
  return fresh;
}
void* __spill_aligned_alloc(size_t alignment, size_t size) { return allocate(alignment, size); }
int __spill_posix_memalign(void** result, size_t alignment, size_t size) {
  *result = allocate(alignment, size);
  return 0;
}
void* __spill__Znwm(size_t size) { return __spill_malloc(size); }
void* __spill__Znam(size_t size) { return __spill_malloc(size); }
void __spill__ZdlPv(void* block) { __spill_free(block); }
void __spill__ZdaPv(void* block) { __spill_free(block); }
void __spill__ZdlPvm(void* block, size_t size) {
  (void)size;
  __spill_free(block);
}
void __spill__ZdaPvm(void* block, size_t size) {
  (void)size;
  __spill_free(block);
}

void* __spill_memmove(void* to, const void* from, size_t size) {
  release_all_but(0);
  if (!in_range((uint64_t)to) && !in_range((uint64_t)from)) return memmove(to, from, size);
  char* bounce = malloc(size + 1);
  copy_pieces(bounce, (uint64_t)from, size, 0);
  copy_pieces(bounce, (uint64_t)to, size, 1);
  free(bounce);
  return to;
}
void* __spill_memcpy(void* to, const void* from, size_t size) { return __spill_memmove(to, from, size); }
void* __spill_memset(void* to, int byte, size_t size) {
  release_all_but(0);
  if (!in_range((uint64_t)to)) return memset(to, byte, size);
  char* bounce = malloc(size + 1);
  memset(bounce, byte, size);
  copy_pieces(bounce, (uint64_t)to, size, 1);
  free(bounce);
  return to;
}

// ---- start and end ----

static void report(void) {
  const char* path = getenv("SPILL_TEST_REPORT");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "faults %lu translations %lu looks %lu reads %lu\n", faults, translations, looks,
          native_reads);
  fclose(file);
}

static const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;

static void reserve_memory(void) {
  memory = memfd_create("spill-test", MFD_CLOEXEC);
  if (ftruncate(memory, MAX_PAGES * PAGE) ||
      mmap((void*)RANGE_BEGIN, MAX_PAGES * PAGE, PROT_NONE, flags, -1, 0) == MAP_FAILED ||
      mmap((void*)POOL_BEGIN, MAX_PAGES * 2 * PAGE, PROT_NONE, flags, -1, 0) == MAP_FAILED)
    die("cannot reserve", RANGE_BEGIN);
}

__attribute__((constructor)) static void start(void) {
  const char* wanted = getenv("SPILL_TEST_RESIDENT");
  if (mmap((void*)TABLE, TABLE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ||
      mmap((void*)SLOTS, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
    die("cannot map the table", (uint64_t)TABLE);
  resident_max = wanted ? atoi(wanted) : 0;
  atexit(report);
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  if (resident_max) reserve_memory();
  start_native_bodies();
}
