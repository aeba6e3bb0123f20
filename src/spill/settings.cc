#include "spill/settings.h"

#include <errno.h>

#include "base/fingerprint.h"
#include "base/json_log.h"
#include "base/log.h"
#include "spill/runtime.h"
#include "storage/opening/open.h"
#include "sys/files.h"
#include "sys/kernel.h"
#include "sys/memory.h"

namespace spill {
namespace {

base::Expected<storage::Device*> open_spill_device(std::string_view where) {
  const storage::OpenParameters parameters = {.overwrite = runtime.options.storage_overwrite != 0,
                                              .spill = true};
  if (runtime.options.encrypt == 0) return storage::open_device(where, parameters);
  base::Text<storage::kMaxPathBytes + 16> text;
  text << "encrypt:[" << where << ']';
  return storage::open_device(text.view(), parameters);
}

}  // namespace

base::Expected<void> read_settings() {
  base::Options& options = runtime.options;
  if (auto read = base::read_options_from_environment(options, runtime.environment); !read) return read;
  const uint64_t machine_bytes = sys::machine_memory_bytes();
  auto checked = base::check_options(options, machine_bytes != 0 ? machine_bytes : ~uint64_t{0});
  if (checked && options.log_format.view() == "json")
    base::set_log_writer(base::write_json_log<base::kProgramJsonLogBytes>);
  return checked;
}

// Small heaps stay in plain memory up to this part of the budget, or this much if that is less.
void set_plain_limit() {
  constexpr uint64_t kPlainShare = 32;
  constexpr uint64_t kMaxPlainBytes = uint64_t{4} << 20;
  const base::Options& options = runtime.options;
  const bool is_small = options.memory != 0 && options.memory / kPlainShare < kMaxPlainBytes;
  runtime.plain_limit_bytes = is_small ? options.memory / kPlainShare : kMaxPlainBytes;
  if (options.spill_all != 0) runtime.plain_limit_bytes = 0;
}

void open_storage() {
  constexpr std::string_view kEverybodys = "/var/tmp";
  std::string_view where = runtime.options.storage.view();
  const bool is_asked_for = !where.empty();
  if (!is_asked_for) {
    where = kEverybodys;
    for (char** entry = runtime.environment; *entry != nullptr; ++entry)
      if (std::string_view(*entry).starts_with("TMPDIR=/")) where = std::string_view(*entry).substr(7);
  }
  auto device = open_spill_device(where);
  const auto is_unusable = [](int error) {
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == EROFS;
  };
  if (!device && !is_asked_for && is_unusable(device.error().number)) device = open_spill_device(kEverybodys);
  if (!device) end_process(device.error());
  runtime.device = *device;
}

void draw_fingerprint_secrets() {
  unsigned char secrets[base::kFingerprintSecretBytes];
  sys::random_bytes(secrets);
  base::set_fingerprint_secrets(secrets, sizeof secrets);
}

void end_process(const base::Error& error, int status) {
  base::log({.name = "failed",
             .level = base::LogLevel::kError,
             .fields = {{"status", status}, {"error", error.number}}},
            error.message);
  sys::syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // namespace spill
