// The files of a device string while a store is made in them: made if they are missing, nobody else's meanwhile, and as they were before
// if it comes to nothing.
//
//   StoreFiles files;
//   files.open(text)                                    files.path_with_content()         files.set_sizes(capacity)
//   open_device(text, {.store = true, .is_locked = true}) and make the store in it
//   files.keep()
//
// Without a lock from the first look to the last write, two that make a store at one path would each undo, or write over, what the other
// one has made. Block devices and memory are as large as they are, and a block device is open for one at a time anyway.
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

  // `text` outlives it. Missing files are made, but not in /dev. Errors: EINVAL for the text and for a link to what is not there; EBUSY when
  // somebody has one of them, after a second; those of opening a file. Cost: some system calls for each.
  base::Expected<void> open(std::string_view text);
  // Is one of them empty, so that somebody has to say how large the store is to be?
  bool needs_capacity() const;
  // The first path, of a block device too, with content (content.h); "": none has any. Errors: of reading.
  base::Expected<std::string_view> path_with_content() const;
  // None is smaller than what a device of so many bytes needs; of a stripe's members each its part. Errors: EFBIG for more than files may have here, those of the file system.
  base::Expected<void> set_sizes(uint64_t capacity_bytes);
  // They stay as they are now.
  void keep() { is_kept_ = true; }

 private:
  struct File {
    Opened opened{-1};
    size_t node = 0;
    uint64_t bytes = 0;  // as it was
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
