// Opens and closes tables, adds functions, and writes statistics.
#include <cerrno>
#include <cmath>
#include <string_view>

#include "capi/batch/objects.h"

namespace capi::batching {
namespace {

constexpr uint64_t kStagingBytes = 64 << 20, kCacheBytes = 8 << 20;

base::Expected<batch::Options> table_options(const spillway_batch_options& given) {
  if (given.log != nullptr || given.file_bytes != 0 || given.memory_bytes != 0 || given.log_bytes != 0)
    return base::failure(
        EINVAL, "table: log, log_bytes, file_bytes and memory_bytes are for a table in a file; name one");
  batch::Options own = {
      .shape = {.key_bytes = given.key_bytes,
                .value_bytes = given.value_bytes,
                .bucket_bytes = given.bucket_bytes},
      .records = given.records,
      .key_space = given.key_space,
      .engine = std::nullopt,
      .grows = given.no_growth == 0,
      .cache_bytes = given.cache_bytes != 0 ? given.cache_bytes : kCacheBytes,
      .staging_bytes = given.staging_bytes,
      .flushers = given.threads != 0 ? given.threads : 1,
      .stale_changes_max = given.stale_changes_max,
      .stale_ms_max = given.stale_ms_max,
  };
  const std::string_view name = given.engine != nullptr ? given.engine : "auto";
  if (name == "auto") return own;
  for (const batch::Engine engine : batch::kEngines)
    if (name == name_of(engine)) own.engine = engine;
  if (!own.engine)
    return base::failure(
        EINVAL, "table: there is no engine ", name,
        "; give auto, linear, direct, prefetch, tagged, cache_buckets, decoupled or partitioned");
  if (own.engine == batch::Engine::kPartitioned && own.staging_bytes == 0) own.staging_bytes = kStagingBytes;
  return own;
}

const char* text_of(batch::Choice::Why why) {
  switch (why) {
    case batch::Choice::Why::kOpened: return "opened";
    case batch::Choice::Why::kGrown: return "grown";
    case batch::Choice::Why::kSessions: return "sessions";
    case batch::Choice::Why::kAnswers: return "answers";
  }
  return "";
}

void write_choice(const batch::Choice& choice, base::TextRef& text) {
  const auto write = [&](const char* name, double number) {
    text << ", \"" << name << "\": ";
    write_thousandths(number, text);
  };
  text << ", \"choice\": {\"trying\": " << (choice.is_trying() ? "true" : "false")
       << ", \"decisions\": " << choice.decision_count() << ", \"why\": \"" << text_of(choice.why()) << '"';
  write("latency_ns", choice.machine().latency_ns);
  write("line_ns", choice.machine().line_ns);
  write("stream_ns", choice.machine().stream_ns);
  text << ", \"cache_bytes\": " << static_cast<uint64_t>(choice.machine().cache_bytes) << ", \"engines\": [";
  const char* comma = "";
  for (const batch::Choice::Candidate& candidate : choice.candidates()) {
    if (std::isinf(candidate.modelled_ns)) continue;
    text << comma << "{\"engine\": \"" << name_of(candidate.engine) << '"';
    comma = ", ";
    write("modelled_ns", candidate.modelled_ns);
    write("measured_ns", candidate.measured_ns);
    text << '}';
  }
  text << "]}";
}

void write_stored(spillway_batch& table, base::TextRef& text) {
  const batch::StoredOptions& options = table.stored->table().options();
  const batch::StoredStatistics all = table.stored->table().statistics();
  sys::LockGuard scope(table.lock);
  text << "{\"table\": {\"engine\": \"stored\", \"key_bytes\": " << options.shape.key_bytes
       << ", \"value_bytes\": " << options.shape.value_bytes << ", \"records\": " << all.records
       << ", \"regions\": " << all.regions << ", \"sessions\": " << table.session_count
       << ", \"file_bytes\": " << table.stored->file_bytes()
       << ", \"used_bytes\": " << all.slots_used * table.stored->slot_bytes()
       << ", \"staging_bytes\": " << all.staging_bytes << "}, \"use\": {\"keys\": " << all.keys
       << ", \"answers\": " << all.answers << ", \"missed\": " << all.missed
       << ", \"dropped\": " << all.dropped << "}, \"making\": {\"staged\": " << all.staged
       << ", \"regions\": " << all.regions_made << ", \"changes\": " << all.changes_made
       << ", \"checkpoints\": " << all.checkpoints << ", \"log_bytes\": " << all.log_bytes << "}}";
}

void write_statistics(spillway_batch& table, base::TextRef& text) {
  if (table.stored != nullptr) return write_stored(table, text);
  const batch::Options& options = table.table.options();
  const batch::Statistics all = table.table.statistics();
  text << "{\"table\": {\"engine\": \"" << name_of(all.engine)
       << "\", \"key_bytes\": " << options.shape.key_bytes
       << ", \"value_bytes\": " << options.shape.value_bytes
       << ", \"bucket_bytes\": " << options.shape.bucket_bytes << ", \"records\": " << all.records
       << ", \"buckets\": " << all.buckets << ", \"growths\": " << all.growths
       << ", \"sessions\": " << all.sessions << ", \"table_bytes\": " << all.table_bytes
       << ", \"staging_bytes\": " << all.staging_bytes << "}, \"use\": {\"keys\": " << all.keys
       << ", \"answers\": " << all.answers << ", \"missed\": " << all.missed
       << ", \"dropped\": " << all.dropped << '}';
  if (!options.engine)
    table.table.visit_choice([&](const batch::Choice& choice) { write_choice(choice, text); });
  text << '}';
}

base::Expected<void> open(spillway_batch& table, const spillway_batch_options& given) {
  if (given.file == nullptr) {
    const auto own = table_options(given);
    return own ? table.table.open(*own) : std::unexpected(own.error());
  }
  auto stored = Stored::open(given);
  if (!stored) return std::unexpected(stored.error());
  table.stored = std::move(*stored);
  return {};
}

}  // namespace
}  // namespace capi::batching

extern "C" {

int spillway_batch_open(const spillway_batch_options* options, spillway_batch** table) {
  using namespace capi::batching;
  if (table == nullptr) return refuse_invalid(nullptr, "table: the place for it is null");
  *table = nullptr;
  if (options == nullptr)
    return refuse_invalid(nullptr,
                          "table: the options are null; key_bytes, value_bytes and records are needed");
  const auto given = capi::read_struct(options, "spillway_batch_options");
  if (!given) return refuse(nullptr, given.error());
  auto* const own = capi::make<spillway_batch>();
  if (own == nullptr) return refuse(nullptr, base::Error::of(ENOMEM, "table: no memory"));
  if (auto opened = open(*own, *given); !opened) {
    capi::destroy(own);
    return refuse(nullptr, opened.error());
  }
  *table = own;
  return SPILLWAY_BATCH_OK;
}

int spillway_batch_close(spillway_batch* table) {
  using namespace capi::batching;
  if (table == nullptr) return SPILLWAY_BATCH_OK;
  table->lock.lock();
  const uint32_t count = table->session_count;
  table->lock.unlock();
  if (count > 0)
    return refuse(nullptr, base::Error::of(EBUSY, "table: ", count, " sessions are open; close them first"));
  base::Expected<void> closed;
  if (table->stored != nullptr) closed = table->stored->close();
  capi::destroy(table);
  return closed ? SPILLWAY_BATCH_OK : refuse(nullptr, closed.error());
}

int spillway_batch_add_function(spillway_batch* table, spillway_batch_function function, void* context,
                                uint32_t* number) {
  using namespace capi::batching;
  if (table == nullptr || function == nullptr || number == nullptr)
    return refuse_invalid(nullptr, "table: the table, the function or the place for its number is null");
  sys::LockGuard scope(table->lock);
  if (table->session_count > 0)
    return refuse(nullptr, base::Error::of(EBUSY, "table: functions are added before sessions are opened; ",
                                           table->session_count, " are open"));
  if (table->function_count == batch::Code::kMaxFunctions)
    return refuse_invalid(nullptr, "table: it has ", batch::Code::kMaxFunctions,
                          " functions, and takes no more");
  const batch::Change change = {.function = function, .context = context};
  *number = table->stored != nullptr ? table->stored->table().add_function(change)
                                     : table->table.add_function(change);
  ++table->function_count;
  return SPILLWAY_BATCH_OK;
}

int spillway_batch_stats(spillway_batch* table, char* text, size_t bytes, size_t* needed_bytes) {
  using namespace capi::batching;
  if (table == nullptr || (text == nullptr && bytes > 0))
    return refuse_invalid(nullptr, "table: the table or the place for its statistics is null");
  base::Text<4096> all;
  write_statistics(*table, all);
  return capi::give_text(all.view(), text, bytes, needed_bytes) ? SPILLWAY_BATCH_OK
                                                                : SPILLWAY_BATCH_TOO_SMALL;
}

}  // extern "C"
