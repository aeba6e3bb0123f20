// Opens the stores that subcommands of `spillway kv` work on, and turns a store's errors into exceptions (kv.h).
#include <cerrno>
#include <stdexcept>

#include "kv.h"
#include "kv/recovery/recovery_reader.h"
#include "storage/opening/open.h"

namespace tools {
namespace {

// Is the medium, the system or another process the reason? If not, something was asked for that cannot be.
bool is_failure(int number) {
  if (kv::is_of_medium(number)) return true;
  switch (number) {
    case EBUSY:
    case EBADMSG:
    case ENOSPC:
    case EDQUOT:
    case EPERM:  // a write was refused; opening without permission ends in EACCES
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ECANCELED:
    case ENODEV:
    case ENXIO:
    case ENOMEDIUM:
    case EBADE:  // another machine has reserved the disk
    case ENOLINK:
    case ESTALE:   // a file server has lost it; or a cache has dropped what was being read
    case EUCLEAN:  // of a file system that is damaged
    case ETIME:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

}  // namespace

void throw_error(const base::Error& error) {
  const std::string line = printable(error.message);
  if (is_failure(error.number)) throw SystemFailure(error.number, line);
  throw WrongInput(line);
}

std::optional<kv::Durability> durability_called(std::string_view name) {
  if (name == "none") return kv::Durability::kNone;
  if (name == "batch") return kv::Durability::kBatch;
  if (name == "sync") return kv::Durability::kSync;
  return std::nullopt;
}

std::string under_key(std::string_view device, std::string_view key_file) {
  if (key_file.empty()) throw WrongInput("--key-file: it names no file");
  if (key_file.contains('['))
    throw WrongInput(concat("--key-file: ", printable(key_file),
                            ": device strings take no path with [; give it another name"));
  return concat("encrypt:key=", key_file, ":[", device, ']');
}

KvDevice::KvDevice(std::string_view text, const storage::OpenParameters& parameters)
    : device_(value_of(storage::open_device(text, parameters))) {}

KvDevice::~KvDevice() { device_->close(); }

KvStore::KvStore(std::string_view device, const kv::StoreOptions& options)
    : device_(device, {.store = true, .read_only = options.read_only}),
      store_(value_of(kv::Store::open(*device_, options))) {}

KvStore::~KvStore() {
  if (store_ != nullptr) static_cast<void>(store_->close());
}

void KvStore::close() {
  auto closed = store_->close();
  store_ = nullptr;
  value_of(std::move(closed));
}

}  // namespace tools
