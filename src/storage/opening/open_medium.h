// Opens the file, directory or block device that a path names, by rules that keep users' data safe.
#pragma once
#include <string_view>

#include "storage/backends/file.h"

namespace storage {

struct OpenParameters {
  bool overwrite = false;  // content that is there may be lost
  bool spill = false;      // for spilled pages, which nobody needs after this process
  bool store =
      false;  // for what is to be there after this process, and is nobody else's meanwhile; not with `spill`
  // With `store`: the end of a file that is not of whole OS pages is not left out. It is refused, or, where it is `read_only`, a block of which
  // only a part is there (Device::end_bytes).
  bool whole = false;
  bool is_locked = false;  // by the caller, as `store` would (store_files.h)
  bool read_only =
      false;  // what is there is only read: of files and block devices, which may be such that they cannot be written
  bool keep_size =
      false;  // a file that `overwrite` is for is not emptied: its length says how much of it to use
};

// What becomes of `path`, with `spill`:
//   a directory            a private file in it that has no name (mode 0600)
//   nothing is there       a file is made, mode 0600, locked against others, and its name removed at once
//   an empty file          used as it is, locked against other processes
//   a file with content    EEXIST, or emptied with `overwrite`, unless `keep_size`
//   a block device         EBUSY if anything uses it; EEXIST if its first and last MiB are not zeros, unless `overwrite`
//   an NVMe character device   as a block device; see open_nvme.h
//   anything else          EINVAL
// Less than 64 MiB free: ENOSPC. A file system in memory: one line of warning.
// Without `spill` files and block devices are opened as they are (made, and kept, if there is none), and
// directories refused. With `store` none is made (ENOENT); a file's capacity is its size, and it is locked: EBUSY while another
// process has it so. With `read_only` it may be a medium that cannot be written.
// Nothing is changed when it fails. Errors have one line that says what, where and what to do.
base::Expected<Medium> open_medium(std::string_view path, const OpenParameters& parameters);

}  // namespace storage
