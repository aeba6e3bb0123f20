// Sessions: jobs of many keys, calls for one key, flushes, visits.
#include <cerrno>

#include "capi/batch/objects.h"

namespace capi::batching {
namespace {

static_assert(int{SPILLWAY_BATCH_READ} == static_cast<int>(batch::Action::kRead) &&
              int{SPILLWAY_BATCH_UPDATE} == static_cast<int>(batch::Action::kUpdate) &&
              int{SPILLWAY_BATCH_CHANGE} == static_cast<int>(batch::Action::kChange) &&
              int{SPILLWAY_BATCH_UPSERT} == static_cast<int>(batch::Action::kUpsert) &&
              int{SPILLWAY_BATCH_REMOVE} == static_cast<int>(batch::Action::kRemove) &&
              int{SPILLWAY_BATCH_MERGE} == static_cast<int>(batch::Action::kMerge));
static_assert(sizeof(batch::Outcome) == 1 &&
              int{SPILLWAY_BATCH_DONE} == static_cast<int>(batch::Outcome::kDone) &&
              int{SPILLWAY_BATCH_NOT_THERE} == static_cast<int>(batch::Outcome::kAbsent) &&
              int{SPILLWAY_BATCH_INSERTED} == static_cast<int>(batch::Outcome::kInserted));
static_assert(sizeof(spillway_batch_job) == 104, "the struct's first version");

constexpr size_t kMinJobBytes = 104;

int check(spillway_batch_session& session, const spillway_batch_job& job) {
  if (job.action > SPILLWAY_BATCH_MERGE)
    return refuse_invalid(&session, "table: there is no action ", job.action);
  const auto action = static_cast<batch::Action>(job.action);
  if (batch::calls_function(action) && job.own_function == nullptr &&
      job.function >= session.table->function_count)
    return refuse_invalid(&session, "table: there is no function ", job.function, "; it has ",
                          session.table->function_count);
  if (job.count == 0) return SPILLWAY_BATCH_OK;
  if (job.keys == nullptr || (batch::takes_values(action) && job.values == nullptr) ||
      (action == batch::Action::kRead && job.read == nullptr))
    return refuse_invalid(&session, "table: the job's keys, or what it takes or reads, are null");
  return SPILLWAY_BATCH_OK;
}

int run(spillway_batch_session& session, spillway_batch_job& job) {
  job.done_count = job.absent_count = job.inserted_count = job.removed_count = 0;
  if (const int status = check(session, job); status != SPILLWAY_BATCH_OK) return status;
  const auto action = static_cast<batch::Action>(job.action);
  const batch::Change own_function = {.function = job.own_function, .context = job.own_context};
  const bool is_own = batch::calls_function(action) && job.own_function != nullptr;
  batch::Job own = {
      .code = {action, static_cast<uint8_t>(batch::calls_function(action) && !is_own ? job.function : 0)},
      .count = job.count,
      .keys = static_cast<const std::byte*>(job.keys),
      .given = batch::takes_values(action) ? static_cast<const std::byte*>(job.values) : nullptr,
      .read = static_cast<std::byte*>(job.read),
      .outcomes = reinterpret_cast<batch::Outcome*>(job.outcomes),
      .own_function = is_own ? &own_function : nullptr,
  };
  const int status = session.session ? answer(session, session.session->run(own))
                                     : answer(session, session.stored->run(own));
  job.done_count = own.done_count;
  job.absent_count = own.absent_count;
  job.inserted_count = own.inserted_count;
  job.removed_count = own.removed_count;
  return status;
}

int run_one(spillway_batch_session* session, uint32_t action, uint32_t function, const void* key,
            const void* value, void* read) {
  if (session == nullptr) [[unlikely]]
    return refuse_invalid(nullptr, "table: session is null");
  spillway_batch_job job = {};
  job.action = action;
  job.function = function;
  job.count = 1;
  job.keys = key;
  job.values = value;
  job.read = read;
  const int status = run(*session, job);
  return status == SPILLWAY_BATCH_OK && job.absent_count == 1 ? SPILLWAY_BATCH_ABSENT : status;
}

}  // namespace
}  // namespace capi::batching

extern "C" {

int spillway_batch_session_open(spillway_batch* table, spillway_batch_session** session) {
  using namespace capi::batching;
  if (session != nullptr) *session = nullptr;
  if (table == nullptr || session == nullptr)
    return refuse_invalid(nullptr, "table: the table or the place for a session is null");
  sys::LockGuard scope(table->lock);
  auto* const own = capi::make<spillway_batch_session>(*table);
  if (own == nullptr) return refuse(nullptr, base::Error::of(ENOMEM, "table: no memory for a session"));
  if (table->stored == nullptr) {
    own->session.emplace(table->table);
  } else if (auto opened = own->stored.emplace().open(table->stored->table()); !opened) {
    capi::destroy(own);
    return refuse(nullptr, opened.error());
  }
  ++table->session_count;
  *session = own;
  return SPILLWAY_BATCH_OK;
}

int spillway_batch_session_close(spillway_batch_session* session) {
  using namespace capi::batching;
  if (session == nullptr) return SPILLWAY_BATCH_OK;
  spillway_batch& table = *session->table;
  sys::LockGuard scope(table.lock);
  capi::destroy(session);
  --table.session_count;
  return SPILLWAY_BATCH_OK;
}

int spillway_batch_run(spillway_batch_session* session, spillway_batch_job* job) {
  using namespace capi::batching;
  if (session == nullptr) [[unlikely]]
    return refuse_invalid(nullptr, "table: session is null");
  if (job == nullptr || job->struct_bytes < kMinJobBytes) [[unlikely]]
    return refuse_invalid(session, "table: the job is null, or its struct_bytes is not the struct's sizeof");
  return run(*session, *job);
}

int spillway_batch_read(spillway_batch_session* session, const void* key, void* value) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_READ, 0, key, nullptr, value);
}
int spillway_batch_update(spillway_batch_session* session, const void* key, const void* value) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_UPDATE, 0, key, value, nullptr);
}
int spillway_batch_change(spillway_batch_session* session, const void* key, uint32_t function,
                          const void* given) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_CHANGE, function, key, given, nullptr);
}
int spillway_batch_upsert(spillway_batch_session* session, const void* key, const void* value) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_UPSERT, 0, key, value, nullptr);
}
int spillway_batch_merge(spillway_batch_session* session, const void* key, uint32_t function,
                         const void* given) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_MERGE, function, key, given, nullptr);
}
int spillway_batch_remove(spillway_batch_session* session, const void* key) {
  return capi::batching::run_one(session, SPILLWAY_BATCH_REMOVE, 0, key, nullptr, nullptr);
}

int spillway_batch_flush(spillway_batch_session* session) {
  using namespace capi::batching;
  if (session == nullptr) return refuse_invalid(nullptr, "table: session is null");
  return session->session ? answer(*session, session->session->flush())
                          : answer(*session, session->stored->flush());
}

int spillway_batch_sync(spillway_batch_session* session) {
  using namespace capi::batching;
  if (session == nullptr) return refuse_invalid(nullptr, "table: session is null");
  if (!session->stored)
    return refuse_invalid(session, "table: it is in memory, and gone with the process; name a file for it");
  return answer(*session, session->stored->sync());
}

int spillway_batch_for_each(spillway_batch_session* session, spillway_batch_visit visit, void* context) {
  using namespace capi::batching;
  if (session == nullptr) return refuse_invalid(nullptr, "table: session is null");
  if (visit == nullptr) return refuse_invalid(session, "table: the callback is null");
  const auto visit_one = [&](const std::byte* key, const std::byte* value) {
    return visit(context, key, value) == 0;
  };
  base::Expected<bool> went_on;
  went_on = session->session ? session->session->for_each(visit_one) : session->stored->for_each(visit_one);
  if (!went_on) return refuse(session, went_on.error());
  return *went_on ? SPILLWAY_BATCH_OK : SPILLWAY_BATCH_STOPPED;
}

}  // extern "C"
