# The tree that this port is in. A port of a release would fetch its archive by
# vcpkg_from_github, with its hash.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

# libdw and MPI are not among what is asked for here, so what this machine has
# must not decide what is built.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DTARN_BUILD_TESTS=OFF
    -DTARN_BUILD_EXAMPLES=OFF
    -DTARN_WITH_MPI=OFF
    -DTARN_WITH_LIBDW=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tarn CONFIG_PATH lib/cmake/tarn)
vcpkg_fixup_pkgconfig()
vcpkg_copy_tools(TOOL_NAMES tarn AUTO_CLEAN)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
