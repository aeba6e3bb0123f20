// What the subcommands of `spillway kv` share: the command line taken apart, the store that they work on, and how they tell errors.
//
// To add one: 1) `int kv_NAME(const KvLine& line);` below, 2) define it in kv_NAME.cc or beside its kin, 3) a row in kv.cc's table,
// 4) its cases in tests/cli/kv_test.py.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "kv/store.h"
#include "storage/opening/open.h"

namespace tools {

// What was typed after `spillway kv NAME`, taken apart. All views refer to main's arguments or to static tables.
struct KvLine {
  std::string_view name;  // of the subcommand
  std::string device;     // the first word; with --key-file the string of an encrypting device over it
  std::vector<std::string_view> words;
  // Arguments by the option's name with its dashes; "" for an option that takes none.
  std::map<std::string_view, std::string_view> options;

  bool has(std::string_view option) const { return options.contains(option); }
  // The argument of an option that was given. Throw WrongInput, which names the option and what it takes.
  uint64_t number(std::string_view option, uint64_t least, uint64_t most) const;
  uint64_t size(std::string_view option) const;
  // Throws WrongInput with one line that begins with the subcommand.
  [[noreturn]] void refuse(std::string_view what) const;
};

// Each returns the exit status, and throws WrongInput or a std::runtime_error.
int kv_make(const KvLine& line);
int kv_get(const KvLine& line);
int kv_put(const KvLine& line);
int kv_delete(const KvLine& line);
int kv_stats(const KvLine& line);
int kv_list(const KvLine& line);
int kv_dump(const KvLine& line);
int kv_load(const KvLine& line);
int kv_check(const KvLine& line);
int kv_compact(const KvLine& line);

// The medium, the system or another process is the reason, not what was asked for.
struct SystemFailure : std::runtime_error {
  SystemFailure(int error, const std::string& text) : std::runtime_error(text), number(error) {}
  int number;  // an errno value
};
// Throws the store's error: as WrongInput if what was asked for cannot be, else as a SystemFailure.
[[noreturn]] void throw_error(const base::Error& error);
template <class T>
T value_of(base::Expected<T> expected) {
  if (!expected) throw_error(expected.error());
  if constexpr (!std::is_void_v<T>) return std::move(*expected);
}

// The durability that --durability calls none, batch or sync. Nothing: the name is none of these.
std::optional<kv::Durability> durability_called(std::string_view name);

// The device string of the device decrypted with the key in the file. Throws WrongInput.
std::string under_key(std::string_view device, std::string_view key_file);

// The device of a store, opened for this process alone. The constructor throws as throw_error does.
class KvDevice {
 public:
  KvDevice(std::string_view text, const storage::OpenParameters& parameters);
  ~KvDevice();
  KvDevice(const KvDevice&) = delete;
  KvDevice& operator=(const KvDevice&) = delete;
  storage::Device& operator*() const { return *device_; }
  storage::Device* operator->() const { return device_; }

 private:
  storage::Device* device_;
};

// A store and its device, opened. The constructor and close() throw as throw_error does.
class KvStore {
 public:
  // With read_only the medium may be one that cannot be written.
  explicit KvStore(std::string_view device, const kv::StoreOptions& options = {});
  // Closes the store if close() was not called, as after an error; a second error is not reported.
  ~KvStore();
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;
  kv::Store& operator*() const { return *store_; }
  kv::Store* operator->() const { return store_; }
  // To be called once, at the end. When it returns, all that was put is on the medium for good.
  void close();

 private:
  KvDevice device_;
  kv::Store* store_ = nullptr;
};

// What `spillway kv stats` prints.
std::string stats_text(kv::Store& store);

// A session, opened and closed by the thread that uses it.
class KvSession {
 public:
  explicit KvSession(kv::Store& store) { value_of(session_.open(store)); }
  ~KvSession() { session_.close(); }
  KvSession(const KvSession&) = delete;
  KvSession& operator=(const KvSession&) = delete;
  kv::Session* operator->() { return &session_; }
  kv::Session& operator*() { return session_; }

 private:
  kv::Session session_;
};

// The key as people read it: control characters and backslashes as \xNN, so that it is one line from which the key can be
// recovered.
std::string escaped(std::string_view key);

}  // namespace tools
