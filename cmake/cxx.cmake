# C++17 for torch/ and its tests. A machine without a compiler for it builds
# everything else. TARN_CXX: there is one.
option(TARN_BUILD_TORCH "Build libtarn_torch.so where there is a C++17 compiler"
  ON)

set(TARN_CXX OFF)
if(NOT TARN_BUILD_TORCH)
  return()
endif()

# The one that belongs to the compiler for C: sanitizers of two vendors do not
# go together, and CMake alone would take the machine's own when it builds for
# another.
if(NOT CMAKE_CXX_COMPILER)
  get_filename_component(folder ${CMAKE_C_COMPILER} DIRECTORY)
  get_filename_component(name ${CMAKE_C_COMPILER} NAME)
  string(REGEX REPLACE "clang" "clang++" twin "${name}")
  string(REGEX REPLACE "gcc" "g++" twin "${twin}")
  string(REGEX REPLACE "^cc$" "c++" twin "${twin}")
  if(twin STREQUAL name)
    return()
  endif()
  find_program(TARN_CXX_COMPILER NAMES ${twin} HINTS ${folder})
  if(NOT TARN_CXX_COMPILER)
    return()
  endif()
  set(CMAKE_CXX_COMPILER ${TARN_CXX_COMPILER})
endif()

enable_language(CXX)
if(cxx_std_17 IN_LIST CMAKE_CXX_COMPILE_FEATURES)
  set(TARN_CXX ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
endif()
