// StoreFiles: the files of a device string while a store is made in them. Missing ones are created, all are locked, and unless keep() is
// called, the destructor restores their previous state.
//
//   StoreFiles files;
//   files.open(text)                                    files.path_with_content()         files.set_sizes(capacity)
//   open_device(text, {.store = true, .is_locked = true}) and make the store in it
//   files.keep()
//
// The locks are held from the first look to the last write: otherwise two processes that make a store at one path could each undo or
// overwrite what the other has made. Block devices need none of this: their size is fixed, and only one process can have them open.
#pragma once
#include "storage/opening/device_string.h"
#include "storage/opening/opened.h"

namespace storage {

class StoreFiles {
 public:
  StoreFiles() = default;
  ~StoreFiles();
  StoreFiles(const StoreFiles&) = delete;
  StoreFiles& operator=(const StoreFiles&) = delete;

  // `text` outlives this object. Creates missing files, except in /dev, and makes their names durable. Errors: EINVAL for the text, and for
  // a symbolic link that leads to no file; EBUSY if somebody else still has one of them after a second; those of opening a file, and of
  // syncing the folder of a new one. Cost: some system calls for each file, and for a new one that sync.
  base::Expected<void> open(std::string_view text);
  // Is one of the files empty, so that the user has to say how large the store is to be?
  bool needs_capacity() const;
  // The first path of the device string, of a file or block device, that has content (content.h); "" if none has. Errors: those of reading.
  base::Expected<std::string_view> path_with_content() const;
  // Enlarges files where a device of `capacity_bytes` needs it; each member of a stripe gets its part. Errors: EFBIG if that is more than this
  // process's limit on file sizes; those of the file system.
  base::Expected<void> set_sizes(uint64_t capacity_bytes);
  // The files stay as they are now.
  void keep() { is_kept_ = true; }

 private:
  struct File {
    Opened opened{-1};
    size_t node = 0;     // of the device string
    uint64_t bytes = 0;  // when it was opened
    bool was_made = false;
  };

  base::Expected<void> open_node(size_t node);
  base::Expected<void> set_size(size_t node, uint64_t bytes);

  DeviceTree tree_;
  File files_[DeviceTree::kMaxNodes];
  size_t count_ = 0;
  bool is_kept_ = false;
};

}  // namespace storage
