// C++'s operator new, as it is called by code that spillcc did not compile.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

// The calling thread is about to ask for memory in the C++ library's operator new.
extern __thread int spillway_in_operator_new __attribute__((tls_model("initial-exec"), visibility("hidden")));

#ifdef __cplusplus
}
#endif
