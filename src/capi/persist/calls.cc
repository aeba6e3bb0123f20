// Flushes, fences, copies; options, marks, layouts and statistics.
#include <unistd.h>

#include <string_view>

#include "capi/persist/objects.h"
#include "persist/layout.h"
#include "persist/own/copy.h"
#include "persist/own/own.h"

extern "C" {

int spillway_persist_configure(const spillway_persist_options* options) {
  using namespace capi::persisting;
  const auto given = capi::read_struct(options, "spillway_persist_options");
  if (!given) return refuse(given.error());
  // What the struct leaves out comes from the environment: above all whether the process is recorded.
  auto own = persist::read_environment(environ, persist::own::default_options());
  if (!own) return refuse(own.error());
  const auto text_or = [](const char* text, std::string_view otherwise) {
    return text != nullptr ? std::string_view(text) : otherwise;
  };
  const persist::Options defaults;
  own->policy = text_or(given->policy, defaults.policy);
  own->instruction = text_or(given->instruction, defaults.instruction);
  own->flushers = text_or(given->flushers, defaults.flushers);
  own->stats = text_or(given->stats, defaults.stats);
  return answer(persist::own::configure(*own));
}

void spillway_persist_flush(const void* address, size_t bytes) {
  persist::own::flush(capi::persisting::number_of(address), bytes, __builtin_return_address(0));
}

int spillway_persist_fence(void) {
  return capi::persisting::answer_written(persist::own::fence(__builtin_return_address(0)));
}

int spillway_persist(const void* address, size_t bytes) {
  persist::own::flush(capi::persisting::number_of(address), bytes, __builtin_return_address(0));
  return capi::persisting::answer_written(persist::own::fence(__builtin_return_address(0)));
}

void* spillway_persist_copy(void* to, const void* from, size_t bytes) {
  persist::own::copy(to, from, bytes, persist::Caches::kChoose, __builtin_return_address(0));
  return to;
}

void* spillway_persist_set(void* to, int byte, size_t bytes) {
  persist::own::set(to, byte, bytes, persist::Caches::kChoose, __builtin_return_address(0));
  return to;
}

int spillway_persist_set_policy(const char* policy) {
  using namespace capi::persisting;
  if (policy == nullptr) return refuse_invalid("policy: its name is null");
  const auto way = persist::parse_way(policy);
  return way ? answer(persist::own::set_way(*way)) : refuse(way.error());
}

void spillway_persist_mark(const char* text) {
  if (text != nullptr) persist::own::mark(text);
}

size_t spillway_persist_layout(const size_t* part_bytes, size_t count, size_t part_alignment,
                               size_t* offsets) {
  if (part_bytes == nullptr || offsets == nullptr) return 0;
  return persist::lay_out({part_bytes, count}, part_alignment, {offsets, count});
}

int spillway_persist_stats(char* text, size_t bytes, size_t* needed_bytes) {
  using namespace capi::persisting;
  if (text == nullptr && bytes > 0) return refuse_invalid("statistics: the place for them is null");
  base::Text<4096> all;
  persist::own::write_statistics(all);
  return capi::give_text(all.view(), text, bytes, needed_bytes) ? SPILLWAY_PERSIST_OK
                                                                : SPILLWAY_PERSIST_TOO_SMALL;
}

}  // extern "C"
