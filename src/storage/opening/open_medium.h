// Opens the file, directory or block device that a path names, by rules that keep users' data safe.
#pragma once
#include <string_view>

#include "storage/backends/file.h"

namespace storage {

struct OpenParameters {
  bool overwrite = false;  // existing content may be lost
  bool spill = false;      // for spilled pages, which nobody needs after this process
  // For content that outlives this process, and that nobody else uses meanwhile. Not with `spill`.
  bool store = false;
  // With `store`: all of the file is used, even if its size is not a multiple of an OS page. Such a file is refused for writing; with
  // `read_only` its last block is partial (Device::end_bytes). If not set, what follows the last whole page is ignored.
  bool whole = false;
  bool is_locked = false;  // with `store`: the caller has the lock already (store_files.h)
  bool read_only = false;  // nothing is written: files and block devices need not be writable
  bool keep_size = false;  // with `overwrite`: a file is not emptied: its size says how much to use
};

// What becomes of `path`, with `spill`:
//   a directory            a private, unnamed file in it (mode 0600)
//   nothing is there       a file is made, mode 0600, locked against others, and its name removed at once
//   an empty file          used as it is, locked against other processes
//   a file with content    EEXIST, or emptied with `overwrite`, unless `keep_size`
//   a block device         EBUSY if anything uses it; EEXIST if its first and last MiB are not zeros, unless `overwrite`
//   an NVMe character device   as a block device; see open_nvme.h
//   anything else          EINVAL
// Less than 64 MiB free on the file system is ENOSPC; a file system in memory causes one line of warning.
//
// Without `spill` files and block devices are opened as they are, a missing file is made and kept, and directories are refused (EISDIR).
// With `store` no file is made (ENOENT); a file's capacity is its size, and it is locked: EBUSY if another process still has it after a
// second.
//
// An error leaves what was there unchanged, and has one line that says what, where and what to do.
base::Expected<Medium> open_medium(std::string_view path, const OpenParameters& parameters);

}  // namespace storage
