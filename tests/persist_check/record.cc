// The calls of record.h, to a recorder: started when the program maps its first domain, if `spillway persist check` runs the program.
// With RECORD_UNTOLD the recorder is told of no store, and has to find them.
#include "record.h"

#include <cstdio>
#include <cstdlib>

#include "persist/check/recorder.h"

namespace {
constinit persist::Recorder recorder;
bool is_untold = false;
}  // namespace

void record_domain(void* address, size_t bytes, const char* path) {
  const char* const log = getenv("SPILLWAY_PERSIST_RECORD");
  if (log == nullptr) return;
  is_untold = getenv("RECORD_UNTOLD") != nullptr;
  auto done = recorder.is_started() ? base::Expected<void>()
                                    : recorder.start({.path = log, .are_stores_told = !is_untold});
  if (done) done = recorder.map(address, bytes, path, 0, bytes);
  if (!done) {
    fprintf(stderr, "%s\n", done.error().message);
    exit(2);
  }
  atexit([] { recorder.finish(); });
}

void record_domain_ends(void* address, size_t bytes) { recorder.unmap(address, bytes); }

void record_store(const void* address, size_t bytes, int is_past_caches) {
  if (!is_untold || is_past_caches != 0)
    recorder.store(address, bytes, __builtin_return_address(0), is_past_caches != 0);
}

void record_flush(const void* address, int is_ordered) {
  recorder.flush(address, 1, is_ordered != 0, __builtin_return_address(0));
}

void record_fence() { recorder.fence(__builtin_return_address(0)); }

void record_marker(const char* text) { recorder.marker(text); }
