// Opens the library that it is told.
#include <dlfcn.h>
#include <stdio.h>

int main(int, char** arguments) { puts(dlopen(arguments[1], RTLD_NOW) != nullptr ? "opened" : dlerror()); }
