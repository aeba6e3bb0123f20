/* Calling program code that may throw from the runtime, which is built without exceptions. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Calls routine(context), then finish(context, 1); finish(context, 0) when an exception or the thread's
   cancellation leaves routine(). */
void spillway_call_guarded(void (*routine)(void*), void (*finish)(void*, int), void* context);

#ifdef __cplusplus
}
#endif
