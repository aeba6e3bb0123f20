// Compiled by clang++: a C++ library that spillcc never saw.
#include <cstddef>
#include <new>

char* foreign_new(size_t n) { return new char[n]; }
void foreign_delete(char* block) { delete[] block; }
void* foreign_new_aligned(size_t n) { return operator new(n, std::align_val_t(4096)); }
void foreign_delete_aligned(void* block) { operator delete(block, std::align_val_t(4096)); }
