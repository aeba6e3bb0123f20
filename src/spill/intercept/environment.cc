// The environment. What the program puts there stays in use, so it is copied once and never freed.
#include <stdlib.h>

#include "spill/intercept/call.h"

SPILL_CALL(char*, getenv, (const char* name), (PlainString(name)))
SPILL_CALL(char*, secure_getenv, (const char* name), (PlainString(name)))
SPILL_CALL(int, setenv, (const char* name, const char* value, int overwrite),
           (PlainString(name), PlainString(value), overwrite))
SPILL_CALL(int, unsetenv, (const char* name), (PlainString(name)))
SPILL_EXPORT int __spill_putenv(char* text) {
  if (plain(text)) return putenv(text);
  PlainString plain_text(text);
  auto* name = const_cast<char*>(static_cast<const char*>(plain_text));
  if (name == nullptr) return spill::fail(ENOMEM);
  char* separator = strchr(name, '=');
  if (separator == nullptr) return unsetenv(name);
  if (separator == name) {
    char* nameless = strdup(name);
    return nameless != nullptr ? putenv(nameless) : -1;
  }
  *separator = 0;
  return setenv(name, separator + 1, 1);
}
