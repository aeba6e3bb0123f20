# The AES of encrypted storage (src/storage/decorators/xts_cipher.h): one object of OpenSSL's static library, code for the CPU's AES instructions, which
# calls nothing, allocates nothing and keeps nothing, as what lives in users' processes has to. What is used of it gets other names, and the rest
# becomes local: the program may have an OpenSSL of its own.
find_library(CRYPTO_ARCHIVE NAMES libcrypto.a REQUIRED)
set(aes_folder ${CMAKE_BINARY_DIR}/aes)
set(aes_archive ${CMAKE_BINARY_DIR}/lib/libspillaes.a)
set(aes_object libcrypto-lib-aesni-x86_64.o)
execute_process(COMMAND ${CMAKE_AR} t ${CRYPTO_ARCHIVE} OUTPUT_VARIABLE members)
if(NOT members MATCHES ${aes_object})
  message(FATAL_ERROR "${CRYPTO_ARCHIVE} has no ${aes_object}; it has to be that of OpenSSL 3 for x86-64 (scripts/install-deps.sh)")
endif()

set(renames --redefine-sym OPENSSL_ia32cap_P=spillway_aes_cpu)
foreach(symbol set_encrypt_key set_decrypt_key xts_encrypt xts_decrypt)
  list(APPEND renames --redefine-sym aesni_${symbol}=spillway_aes_${symbol})
endforeach()
file(MAKE_DIRECTORY ${aes_folder})
add_custom_command(
  OUTPUT ${aes_archive}
  COMMAND ${CMAKE_AR} x ${CRYPTO_ARCHIVE} ${aes_object}
  COMMAND ${CMAKE_OBJCOPY} ${renames} ${aes_object}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=spillway_aes_* ${aes_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${aes_archive}
  COMMAND ${CMAKE_AR} qcs ${aes_archive} ${aes_object}
  WORKING_DIRECTORY ${aes_folder}
  DEPENDS ${CRYPTO_ARCHIVE}
  COMMENT "Renaming the symbols of OpenSSL's AES"
  VERBATIM)
add_custom_target(spillway_aes_archive DEPENDS ${aes_archive})
add_library(spillway_aes STATIC IMPORTED GLOBAL)
set_target_properties(spillway_aes PROPERTIES IMPORTED_LOCATION ${aes_archive})
add_dependencies(spillway_aes spillway_aes_archive)
# Object libraries carry no library to who takes their objects.
target_link_libraries(spillway_common INTERFACE spillway_aes)
