// A library that spillcc does not compile: its accesses to spilled memory fault.
void foreign_hot(volatile char* at) { ++*at; }
void foreign_cold(volatile char* at) { *at ^= 8; }
