# A stand-in for vcpkg's functions, as far as packaging/vcpkg/portfile.cmake
# calls them: it runs the steps of the port, for a release build, into PREFIX.
# It is none of vcpkg's code, and does not show that vcpkg would run the port.
#
#   cmake -DPREFIX=FOLDER -P scripts/vcpkg-stand-in.cmake
set(CURRENT_PACKAGES_DIR "${PREFIX}")
get_filename_component(port "${CMAKE_CURRENT_LIST_DIR}/../packaging/vcpkg"
  ABSOLUTE)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run(${CMAKE_COMMAND} -S "${arg_SOURCE_PATH}" -B "${PREFIX}/../build" -G Ninja
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${PREFIX}"
    -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build "${PREFIX}/../build" -j 2)
  run(${CMAKE_COMMAND} --install "${PREFIX}/../build")
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  file(MAKE_DIRECTORY "${PREFIX}/share")
  file(RENAME "${PREFIX}/${arg_CONFIG_PATH}"
    "${PREFIX}/share/${arg_PACKAGE_NAME}")
endfunction()

function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS "${PREFIX}/lib/pkgconfig/tarn.pc")
    message(FATAL_ERROR "no lib/pkgconfig/tarn.pc")
  endif()
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(PARSE_ARGV 0 arg "AUTO_CLEAN" "" "TOOL_NAMES")
  foreach(tool IN LISTS arg_TOOL_NAMES)
    file(COPY "${PREFIX}/bin/${tool}" DESTINATION "${PREFIX}/tools/tarn")
  endforeach()
  file(REMOVE_RECURSE "${PREFIX}/bin")
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  foreach(file IN LISTS arg_FILE_LIST)
    configure_file("${file}" "${PREFIX}/share/tarn/copyright" COPYONLY)
  endforeach()
endfunction()

include("${port}/portfile.cmake")
