# How every file of the project is compiled: C11, warnings on, hidden symbols.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(TARN_SANITIZE "" CACHE STRING
    "Sanitizers for everything that is built, e.g. address,undefined or thread")
option(TARN_WERROR "Warnings are errors, with the compilers that the tree names" OFF)

# The compilers whose warnings the tree is free of, those of Debian 12. A newer
# one has warnings that nobody has seen yet, which must not stop a build.
set(TARN_CLEAN_COMPILERS GNU-12 Clang-14)

find_package(Threads REQUIRED)

# A target without flags of its own that carries them to all others.
add_library(tarn_flags INTERFACE)
target_compile_definitions(tarn_flags INTERFACE _GNU_SOURCE)
target_compile_options(tarn_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> -Wformat=2 -Wundef
  -fno-strict-aliasing -fno-semantic-interposition)
target_link_libraries(tarn_flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
string(REGEX MATCH "^[0-9]+" major "${CMAKE_C_COMPILER_VERSION}")
if(TARN_WERROR AND "${CMAKE_C_COMPILER_ID}-${major}" IN_LIST TARN_CLEAN_COMPILERS)
  target_compile_options(tarn_flags INTERFACE -Werror)
endif()
if(TARN_SANITIZE)
  target_compile_options(tarn_flags INTERFACE
    -fsanitize=${TARN_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(tarn_flags INTERFACE -fsanitize=${TARN_SANITIZE})
endif()
