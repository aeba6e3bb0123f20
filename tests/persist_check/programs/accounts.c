// Accounts over libpmemobj: each transfer is a transaction that changes two of them, and puts a note of it, which it allocates, first in a list. What libpmemobj
// flushes is seen by `spillway persist run`.
//
//   accounts make FILE              a pool, with its accounts
//   accounts run FILE BUG           some transfers; BUG 0 is correct
//   accounts verify FILE DONE       exit status 0: the pool opens, and holds DONE transfers, or one more
#include <dlfcn.h>
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kNotAdded = 1,      // one account is changed, and its transaction does not know
  kOutsideCommit,     // the count is changed after the transaction that it belongs to, in one of its own
  kNeitherPersisted,  // an account is changed after the transaction, and not flushed
};
enum { kAccounts = 32, kTransfers = 6, kBegin = 1000 };

POBJ_LAYOUT_BEGIN(accounts);
POBJ_LAYOUT_ROOT(accounts, struct bank);
POBJ_LAYOUT_TOID(accounts, struct note);
POBJ_LAYOUT_END(accounts);

struct note {
  uint64_t from, to, amount;
  TOID(struct note) older;
};
struct bank {
  uint64_t count;
  TOID(struct note) newest;
  uint64_t balances[kAccounts];
};

static void mark(unsigned count) {
  void (*const tell)(const char*) = (void (*)(const char*))dlsym(RTLD_DEFAULT, "spillway_persist_mark");
  char text[16];
  snprintf(text, sizeof text, "%u", count);
  if (tell != NULL) tell(text);
}

static void transfer(PMEMobjpool* pool, TOID(struct bank) bank, unsigned number, int bug) {
  const unsigned from = number * 5 % kAccounts, to = (number * 11 + 17) % kAccounts, amount = 10 + number;
  TX_BEGIN(pool) {
    TX_ADD_FIELD(bank, balances[from]);
    D_RW(bank)->balances[from] -= amount;
    if (bug != kNotAdded) TX_ADD_FIELD(bank, balances[to]);
    if (bug != kNeitherPersisted) D_RW(bank)->balances[to] += amount;
    TOID(struct note) note = TX_NEW(struct note);
    *D_RW(note) = (struct note){from, to, amount, D_RO(bank)->newest};
    TX_SET(bank, newest, note);
    if (bug != kOutsideCommit) TX_SET(bank, count, number);
  }
  TX_ONABORT { abort(); }
  TX_END
  if (bug == kOutsideCommit) {
    D_RW(bank)->count = number;
    pmemobj_persist(pool, &D_RW(bank)->count, 8);
  }
  if (bug == kNeitherPersisted) D_RW(bank)->balances[to] += amount;
}

static int fail(const char* what, uint64_t number) {
  printf("%s %llu\n", what, (unsigned long long)number);
  return 1;
}

static int verify(const struct bank* bank, uint64_t done) {
  if (bank->count != done && bank->count != done + 1) return fail("not as after transfer", done);
  int64_t balances[kAccounts] = {0};
  uint64_t notes = 0;
  for (TOID(struct note) note = bank->newest; !TOID_IS_NULL(note); note = D_RO(note)->older) {
    if (++notes > bank->count) break;
    balances[D_RO(note)->from] -= (int64_t)D_RO(note)->amount;
    balances[D_RO(note)->to] += (int64_t)D_RO(note)->amount;
  }
  if (notes != bank->count) return fail("there are other notes than transfers:", bank->count);
  for (unsigned i = 0; i < kAccounts; ++i)
    if ((int64_t)bank->balances[i] != kBegin + balances[i]) return fail("a wrong balance of account", i);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int is_made = strcmp(argv[1], "make") == 0;
  PMEMobjpool* const pool = is_made
                                ? pmemobj_create(argv[2], POBJ_LAYOUT_NAME(accounts), PMEMOBJ_MIN_POOL, 0600)
                                : pmemobj_open(argv[2], POBJ_LAYOUT_NAME(accounts));
  if (pool == NULL) {
    printf("%s\n", pmemobj_errormsg());
    return 1;
  }
  TOID(struct bank) bank = POBJ_ROOT(pool, struct bank);
  int status = 0;
  if (is_made) {
    for (unsigned i = 0; i < kAccounts; ++i) D_RW(bank)->balances[i] = kBegin;
    pmemobj_persist(pool, D_RW(bank), sizeof(struct bank));
  } else if (strcmp(argv[1], "run") == 0) {
    for (unsigned i = 1; i <= kTransfers; ++i) {
      transfer(pool, bank, i, argc > 3 ? atoi(argv[3]) : 0);
      mark(i);
    }
  } else {
    status = verify(D_RO(bank), argc > 3 ? (uint64_t)atoi(argv[3]) : 0);
  }
  pmemobj_close(pool);
  return status;
}
