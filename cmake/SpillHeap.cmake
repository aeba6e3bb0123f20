# jemalloc as the spill heap's allocator: Debian's static archive with every symbol renamed, so that it
# lives beside whatever allocator the program uses, and with its way to the OS and to mutexes led
# through the runtime (src/spill/heap_system.cc).
find_library(JEMALLOC_ARCHIVE NAMES libjemalloc_pic.a REQUIRED)
set(SPILL_JEMALLOC ${CMAKE_BINARY_DIR}/lib/libspillje.a)

set(public_symbols
  malloc calloc realloc free aligned_alloc posix_memalign memalign valloc malloc_usable_size malloc_stats_print
  mallocx rallocx xallocx sallocx dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib
  malloc_conf malloc_conf_2_conf_harder malloc_message)
set(system_symbols
  mmap munmap madvise pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock pthread_mutex_init pthread_create
  pthread_key_create close)
set(renames "")
foreach(symbol IN LISTS public_symbols)
  list(APPEND renames --redefine-sym ${symbol}=spillje_${symbol})
endforeach()
foreach(symbol IN LISTS system_symbols)
  list(APPEND renames --redefine-sym ${symbol}=spillway_heap_${symbol})
endforeach()

add_custom_command(
  OUTPUT ${SPILL_JEMALLOC}
  # The C++ operators need exceptions, and the program has its own.
  COMMAND ${CMAKE_COMMAND} -E copy ${JEMALLOC_ARCHIVE} ${SPILL_JEMALLOC}
  COMMAND sh -c "${CMAKE_AR} t ${SPILL_JEMALLOC} | grep jemalloc_cpp | xargs ${CMAKE_AR} d ${SPILL_JEMALLOC}"
  COMMAND ${CMAKE_OBJCOPY} ${renames} ${SPILL_JEMALLOC}
  DEPENDS ${JEMALLOC_ARCHIVE}
  COMMENT "Renaming jemalloc's symbols"
  VERBATIM)
add_custom_target(spill_jemalloc DEPENDS ${SPILL_JEMALLOC})
