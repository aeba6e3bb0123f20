/* What the programs over libpmemobj share (maps.h): transactions, or the end of the program. */
#include <stdio.h>
#include <stdlib.h>

#include "maps.h"

_Noreturn void die(const char *what) {
  fprintf(stderr, "%s failed: %s\n", what, pmemobj_errormsg());
  exit(1);
}

void tx_begin(PMEMobjpool *pool) {
  if (pmemobj_tx_begin(pool, NULL, TX_PARAM_NONE) != 0) die("begin");
}

void tx_end(void) {
  pmemobj_tx_commit();
  if (pmemobj_tx_end() != 0) die("commit");
}

PMEMoid tx_new(size_t bytes) {
  const PMEMoid made = pmemobj_tx_zalloc(bytes, 0);
  if (OID_IS_NULL(made)) die("allocation");
  return made;
}

void tx_free(PMEMoid object) {
  if (pmemobj_tx_free(object) != 0) die("free");
}

void tx_add(void *place, size_t bytes) {
  if (pmemobj_tx_add_range_direct(place, bytes) != 0) die("snapshot");
}
