// Does a medium hold anything that whoever makes something new on it would lose? What is not zeros is content.
#pragma once
#include <string_view>

#include "storage/device.h"

namespace storage {

// Of a file all of it is looked at, holes excepted; of a block device what content_of_ends() looks at, without its being opened for use;
// of a path where nothing is, or something else, nothing. Cost: reads all that a file has. Errors: of reading it, ENOMEM.
base::Expected<bool> path_has_content(std::string_view path);
// The first and the last MiB of a device: file systems, partition tables, labels of RAIDs and stores begin there, or have their copies
// there. What lies past the medium's end is none. Errors: of reading it, EMFILE, ENOMEM.
base::Expected<bool> device_has_content(Device& device);

}  // namespace storage
