// Thread functions that take small objects: names, keys, attributes. (Threads are started in thread.cc.)
#include <pthread.h>

#include "spill/intercept/intercept.h"
#include "spill/thread.h"

namespace spill {

SPILL_EXPORT int __spill_pthread_join(pthread_t thread, void** result) {
  PlainObject<void*> plain_result(result);
  clear_slots();
  return pthread_join(thread, plain_result);
}
SPILL_EXPORT int __spill_pthread_setname_np(pthread_t thread, const char* name) {
  return pthread_setname_np(thread, PlainString(name));
}
SPILL_EXPORT int __spill_pthread_getname_np(pthread_t thread, char* name, size_t n) {
  return pthread_getname_np(thread, PlainBytes(name, n, PlainBytes::kInOut).data(), n);
}
SPILL_EXPORT int __spill_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return pthread_key_create(PlainObject<pthread_key_t>(key), destroy);
}

// The list of cancellation handlers belongs to the thread: a loop's task is not suspended while some of them are its own. (In C;
// in C++ they are destructors.)
SPILL_EXPORT void __spill___pthread_register_cancel(__pthread_unwind_buf_t* buffer) {
  __pthread_register_cancel(buffer);
  begin_busy();
}
SPILL_EXPORT void __spill___pthread_unregister_cancel(__pthread_unwind_buf_t* buffer) {
  __pthread_unregister_cancel(buffer);
  end_busy();
}
SPILL_EXPORT void __spill___pthread_register_cancel_defer(__pthread_unwind_buf_t* buffer) {
  __pthread_register_cancel_defer(buffer);
  begin_busy();
}
SPILL_EXPORT void __spill___pthread_unregister_cancel_restore(__pthread_unwind_buf_t* buffer) {
  __pthread_unregister_cancel_restore(buffer);
  end_busy();
}

// Attributes.
#define SPILL_ATTRIBUTE(T, name, parameters, arguments) \
  SPILL_EXPORT int __spill_##name parameters {          \
    PlainObject<T> attribute(attributes);               \
    return name arguments;                              \
  }
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_init, (pthread_attr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_destroy, (pthread_attr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_setdetachstate, (pthread_attr_t * attributes, int state),
                (attribute, state))
SPILL_ATTRIBUTE(pthread_attr_t, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t bytes),
                (attribute, bytes))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_init, (pthread_mutexattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_destroy, (pthread_mutexattr_t * attributes),
                (attribute))
SPILL_ATTRIBUTE(pthread_mutexattr_t, pthread_mutexattr_settype, (pthread_mutexattr_t * attributes, int type),
                (attribute, type))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_init, (pthread_condattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_destroy, (pthread_condattr_t * attributes), (attribute))
SPILL_ATTRIBUTE(pthread_condattr_t, pthread_condattr_setclock,
                (pthread_condattr_t * attributes, clockid_t clock), (attribute, clock))

}  // namespace spill
