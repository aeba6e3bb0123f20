// What mtest6 calls and lmdb.h does not declare.
#pragma once
#include "lmdb.h"

char* mdb_dkey(MDB_val* key, char* buffer);
