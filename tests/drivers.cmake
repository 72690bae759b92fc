# Programs on a real device: those with tests over the list of devices
# (support/places.h) run these once more on opencl:0, in the build that users
# have. The sanitizers know nothing of a driver, and the tests are as quick as
# they can be. Where there is no driver, each says so and is skipped.

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
set(TARN_DRIVER_ENVIRONMENT TARN_TEST_DEVICE=opencl:0
  "POCL_DEVICES=pthread pthread" POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/pocl)

# Memory by other methods than those that the plug-in chooses by itself; PoCL
# has these. `scripts/check long` runs all of them.
set(TARN_DRIVER_METHODS device=window host=mapped unified=none
  device=window,host=mapped,unified=none)

# What PoCL and its compiler leave behind is their own.
set(TARN_DRIVER_LEAKS ${CMAKE_CURRENT_LIST_DIR}/support/drivers.supp)

# tarn_driver_test(ENTRY PROGRAM LABEL [VARIABLE=VALUE...])
function(tarn_driver_test entry program label)
  add_test(NAME ${entry} COMMAND ${program})
  set_tests_properties(${entry} PROPERTIES
    TIMEOUT 1200 SKIP_RETURN_CODE 77 LABELS ${label}
    ENVIRONMENT "${TARN_DRIVER_ENVIRONMENT};${ARGN}")
endfunction()

# tarn_on_drivers(TEST PROGRAM SOURCE): TEST_opencl, with the label opencl, and
# TEST_opencl_METHODS, with the label methods.
function(tarn_on_drivers test program source)
  if(NOT TARGET tarn_opencl_plugin)
    return()
  endif()
  if(TARN_SANITIZE MATCHES address AND test STREQUAL TARN_SMOKE_TEST)
    tarn_driver_test(${test}_opencl ${program} opencl
      LSAN_OPTIONS=print_suppressions=0:suppressions=${TARN_DRIVER_LEAKS})
  endif()
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${source} text)
  if(TARN_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo
     OR NOT text MATCHES "${TARN_ON_DEVICES}")
    return()
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY TARN_DRIVER_RUNS "${program}\n")
  tarn_driver_test(${test}_opencl ${program} opencl)
  foreach(methods ${TARN_DRIVER_METHODS})
    string(REGEX REPLACE "[=,]" "_" suffix ${methods})
    tarn_driver_test(${test}_opencl_${suffix} ${program} methods
      TARN_OPENCL_MEMORY=${methods})
  endforeach()
endfunction()
