#include "spill/intercept/once.h"

struct call {
  void (*finish)(void*, int);
  void* context;
  int returned;
};

static void end_call(struct call* call) { call->finish(call->context, call->returned); }

void spillway_call_guarded(void (*routine)(void*), void (*finish)(void*, int), void* context) {
  __attribute__((cleanup(end_call))) struct call call = {finish, context, 0};
  routine(context);
  call.returned = 1;
}
