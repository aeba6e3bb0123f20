#include "storage/backends/open_files.h"

#include "base/check.h"
#include "storage/backends/aio.h"
#include "storage/objects.h"

namespace storage {
namespace {

constexpr uint64_t kPlaces = uint64_t{1} << kOpenFileOffsetBits;
constexpr uint64_t kMaxDescriptors = uint64_t{1} << 19;

Medium medium_of_open_files() {
  Medium medium;
  medium.capacity_bytes = kMaxDescriptors * kPlaces;
  medium.block_bytes = 4096;
  medium.is_direct = true;
  base::TextRef(medium.label, sizeof medium.label) << "files that are mapped";
  return medium;
}

class OpenFilesDevice final : public AioDevice {
 public:
  OpenFilesDevice() : AioDevice("aio", medium_of_open_files(), kDefaultAioDepth) { counted_ = false; }

  Where where(const Io& io) const override {
    CHECK(io.operation == Operation::kRead);
    return {.descriptor = static_cast<int>(io.offset_bytes / kPlaces),
            .offset_bytes = io.offset_bytes % kPlaces};
  }

 private:
  void do_close() override {
    end();
    free_object(this, 0);
  }
};

}  // namespace

base::Expected<Device*> make_open_files_device() {
  auto device = make_object<OpenFilesDevice>(0, "a device of open files");
  if (!device) return std::unexpected(device.error());
  if (auto probed = (*device)->probe(0); !probed) {
    (*device)->close();
    return std::unexpected(probed.error());
  }
  return *device;
}

std::optional<uint64_t> offset_in_open_file(int descriptor, uint64_t place_bytes, uint64_t length_bytes) {
  const auto number = static_cast<uint64_t>(descriptor);
  if (number >= kMaxDescriptors || length_bytes > kPlaces || place_bytes > kPlaces - length_bytes)
    return std::nullopt;
  return number * kPlaces + place_bytes;
}

}  // namespace storage
