// What the subcommands of `spillway kv` share: their words and options, and the store that they work on.
//
// To add one: 1) `int kv_NAME(const KvLine& line);` below, 2) define it in kv_NAME.cc or beside its kin, 3) a row in kv.cc's table,
// 4) its cases in tests/cli/kv_test.py.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "kv/store.h"
#include "storage/opening/open.h"

namespace tools {

// What was typed after `spillway kv NAME`, taken apart. Texts are those of main's arguments, or of static tables.
struct KvLine {
  std::string_view name;  // of the subcommand
  std::string device;     // the first of the words, under the key of --key-file
  std::vector<std::string_view> words;
  std::map<std::string_view, std::string_view>
      options;  // by name, with dashes; "" for those without argument

  bool has(std::string_view option) const { return options.contains(option); }
  // Of an option that is there. They throw WrongInput, which names it and the numbers that it takes.
  uint64_t number(std::string_view option, uint64_t least, uint64_t most) const;
  uint64_t size(std::string_view option) const;
  // Wrong input, in one line that begins with the subcommand.
  [[noreturn]] void refuse(std::string_view what) const;
};

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

// What the medium or the system did.
struct SystemFailure : std::runtime_error {
  SystemFailure(int error, const std::string& text) : std::runtime_error(text), number(error) {}
  int number;  // an errno value
};
// The store's error for the user: WrongInput for what was asked, else a SystemFailure.
[[noreturn]] void throw_error(const base::Error& error);
template <class T>
T value_of(base::Expected<T> expected) {
  if (!expected) throw_error(expected.error());
  if constexpr (!std::is_void_v<T>) return std::move(*expected);
}

// The device string of what lies on the device under the key in the file. Throws WrongInput.
std::string under_key(std::string_view device, std::string_view key_file);

// The store's device, this process's alone; for reading only, where nothing may be written. Throws as throw_error.
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

// A store that is there, opened. Throws as throw_error.
class KvStore {
 public:
  // With read_only also of a medium that cannot be written.
  explicit KvStore(std::string_view device, const kv::StoreOptions& options = {});
  // Without close(), after something went wrong: what close() would say is not said.
  ~KvStore();
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;
  kv::Store& operator*() const { return *store_; }
  kv::Store* operator->() const { return store_; }
  // What was put is on the medium for good when this returns. Once, at the end.
  void close();

 private:
  KvDevice device_;
  kv::Store* store_ = nullptr;
};

// What `spillway kv stats` prints.
std::string stats_text(kv::Store& store);

// A session of the calling thread.
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

// The key for people: control characters and backslashes as \xNN, so that it is one line, and the key can be got back from it.
std::string escaped(std::string_view key);

}  // namespace tools
