#include "kv/media/forgetful_device.h"

#include "storage/decorators/decorator.h"

namespace kv {
namespace {

class ForgetfulQueue;

class ForgetfulDevice final : public storage::Decorator<ForgetfulDevice, ForgetfulQueue> {
 public:
  explicit ForgetfulDevice(storage::Device* inner) : Decorator(inner) {
    base::TextRef(name_, sizeof name_) << inner->name();
  }

 private:
  // It does not own the inner device.
  void do_close() override { storage::free_object(this, 0); }
};

struct ForgetfulSlot : storage::DecoratorSlot<ForgetfulQueue, ForgetfulSlot> {};

class ForgetfulQueue final : public storage::DecoratorQueue<ForgetfulQueue, ForgetfulSlot> {
 public:
  ForgetfulQueue(ForgetfulDevice& device, storage::Queue* inner, size_t depth)
      : DecoratorQueue(device, inner, depth, this + 1) {}

  void inner_done(ForgetfulSlot& slot) { complete_as_is(take_result(slot)); }

 private:
  void do_start(storage::Io& io) override {
    if (io.operation == storage::Operation::kRead) {
      gather(take_slot(io));
      return;
    }
    io.transferred_bytes = io.length_bytes;
    complete(io);
  }
};

}  // namespace

base::Expected<storage::Device*> make_forgetful_device(storage::Device& inner) {
  auto device = storage::make_object<ForgetfulDevice>(0, "a device that forgets", &inner);
  if (!device) return std::unexpected(device.error());
  return *device;
}

}  // namespace kv
