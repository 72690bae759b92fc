# Programs on a device with a driver: those with tests over the list of devices
# (support/places.h) run these once more on opencl:0, and on cuda:0 and hip:0
# over stand-ins for a driver, in the build that users have. The sanitizers know
# nothing of a driver, and the tests are as quick as they can be. Where there is
# no driver, each says so and is skipped.

# How a program's source shows that it has such tests; house_drivers finds those
# that show it in another way.
string(CONCAT TARN_ON_DEVICES
  "TEST_ON\\(|TEST_SET_ON\\(|TEST_LOOP_ON(_LIBRARY)?\\(|TEST_X(_ASYNC)?\\(|"
  "TEST_TIMELINES\\(|TEST_PLACES_OF_NET\\(|TEST_LOOP\\([^)]*_DEVICES|"
  "GROUND_TEST\\(|MAPPED_TEST\\(|ON_GROUNDS\\(|GROUNDS\\)")

# Under the address sanitizer one of them does: it sees copies, kernels and
# streams of the plug-in over a driver.
set(TARN_SMOKE_TEST device_rows)

# PoCL, the driver of the tests, shows a second device for the tests that need
# two, and keeps the kernels that it compiles in the build folder.
set(TARN_DRIVER_opencl TARN_TEST_DEVICE=opencl:0
  "POCL_DEVICES=pthread pthread" POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/pocl)

# Test doubles, in folders of their own. Each shows two devices as well. Copies
# that are queued read their source late, which is the worst that a driver may
# do, and granules are small, since the tests are.
set(standin_settings TARN_STANDIN_DEVICES=2 TARN_STANDIN_PAGEABLE=late
  TARN_STANDIN_GRANULARITY=65536 TARN_STANDIN_ADDRESSES=68719476736)
set(TARN_DRIVER_cuda_standin TARN_TEST_DEVICE=cuda:0 ${standin_settings}
  LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/standin_cuda
  TARN_STANDIN_KERNELS=${PROJECT_BINARY_DIR}/tests/standin_cuda/tarn_cuda_kernels.so)
set(TARN_DRIVER_hip_standin TARN_TEST_DEVICE=hip:0 ${standin_settings}
  LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/standin_hip_6:${PROJECT_BINARY_DIR}/tests/standin_cuda)

# Without kernels for rows, and with a call for each mapping, these take long and
# find little that they do not find on cuda:0: `scripts/check long` runs them.
string(CONCAT TARN_LONG_ON_HIP
  "^(cache_rows|device_threads|embedding_apply|examples_train|"
  "pool_(arena_random|chance|misuse_random)|synced_caffe_threads|table_files|"
  "whole_(rows|rows_loads|rows_random|table|threads|types))$")

# Nor do these, of calls by chance, find there what they do not find on opencl:0
# and, with conform and the sweeps, on cuda:0.
set(TARN_LONG_ON_CUDA "^pool_(chance|misuse_random)$")

# Memory by other methods than those that the plug-in chooses by itself; PoCL
# has these. `scripts/check long` runs all of them.
set(TARN_DRIVER_METHODS device=window host=mapped unified=none
  device=window,host=mapped,unified=none)

# What PoCL and its compiler leave behind is their own.
set(TARN_DRIVER_LEAKS ${CMAKE_CURRENT_LIST_DIR}/support/drivers.supp)

# tarn_driver_test(ENTRY PROGRAM DRIVER LABEL [VARIABLE=VALUE...])
function(tarn_driver_test entry program driver label)
  add_test(NAME ${entry} COMMAND ${program})
  set_tests_properties(${entry} PROPERTIES
    TIMEOUT 1200 SKIP_RETURN_CODE 77 LABELS ${label}
    ENVIRONMENT "${TARN_DRIVER_${driver}};${ARGN}")
endfunction()

# tarn_on_drivers(TEST PROGRAM SOURCE): TEST_opencl, TEST_cuda_standin and
# TEST_hip_standin, with the label drivers, and TEST_opencl_METHODS, with the
# label methods, which `scripts/check long` runs.
function(tarn_on_drivers test program source)
  set(has_opencl OFF)
  if(TARGET tarn_opencl_plugin)
    set(has_opencl ON)
  endif()
  if(has_opencl AND TARN_SANITIZE MATCHES address
     AND test STREQUAL TARN_SMOKE_TEST)
    tarn_driver_test(${test}_opencl ${program} opencl drivers
      LSAN_OPTIONS=print_suppressions=0:suppressions=${TARN_DRIVER_LEAKS})
  endif()
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${source} text)
  if(TARN_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo
     OR NOT text MATCHES "${TARN_ON_DEVICES}")
    return()
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY TARN_DRIVER_RUNS "${program}\n")
  foreach(name cuda hip)
    string(TOUPPER ${name} upper)
    set(label drivers)
    if(test MATCHES "${TARN_LONG_ON_${upper}}")
      set(label methods)
    endif()
    tarn_driver_test(${test}_${name}_standin ${program} ${name}_standin ${label})
  endforeach()
  if(NOT has_opencl)
    return()
  endif()
  tarn_driver_test(${test}_opencl ${program} opencl drivers)
  foreach(methods ${TARN_DRIVER_METHODS})
    string(REGEX REPLACE "[=,]" "_" suffix ${methods})
    tarn_driver_test(${test}_opencl_${suffix} ${program} opencl methods
      TARN_OPENCL_MEMORY=${methods})
  endforeach()
endfunction()
