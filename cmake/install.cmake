# What `cmake --install` puts where: libraries, headers, the tool, man pages,
# and what find_package(tarn) and pkg-config need to find them. The installed
# tree may be moved: no file in it holds an absolute path.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tarn)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Libraries, headers, tool.
set_target_properties(tarn_static PROPERTIES EXPORT_NAME tarn_static)
install(TARGETS tarn tarn_static EXPORT tarn-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tarn
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/include/tarn.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tarn_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
  DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/tarn)

# Completion in shells.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/completion/tarn.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tarn)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/completion/_tarn
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# Plug-ins that are not in the library, where it finds them.
get_property(modules GLOBAL PROPERTY TARN_MODULES)
foreach(module IN LISTS modules)
  get_target_property(is_built_in ${module} TARN_IS_BUILT_IN)
  if(NOT is_built_in)
    install(TARGETS ${module}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tarn)
  endif()
endforeach()

# find_package(tarn CONFIG): targets tarn::tarn and tarn::tarn_static.
install(EXPORT tarn-targets NAMESPACE tarn:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/tarn-config.cmake.in
  ${PROJECT_BINARY_DIR}/tarn-config.cmake
  INSTALL_DESTINATION ${package_dir}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/tarn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/tarn-config.cmake
  ${PROJECT_BINARY_DIR}/tarn-config-version.cmake
  DESTINATION ${package_dir})

# pkg-config: paths relative to where tarn.pc itself stands.
file(RELATIVE_PATH pc_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH pc_libdir
  ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir
  ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/tarn.pc.in
  ${PROJECT_BINARY_DIR}/tarn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tarn.pc DESTINATION ${pkgconfig_dir})

# Man pages, where scdoc is there to make them.
find_program(SCDOC scdoc)
if(SCDOC)
  file(GLOB man_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.scd)
  set(man_pages)
  foreach(source IN LISTS man_sources)
    get_filename_component(page ${source} NAME_WLE)
    set(page ${PROJECT_BINARY_DIR}/man/${page})
    add_custom_command(OUTPUT ${page}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
      COMMAND ${SCDOC} < ${source} > ${page}
      DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${page})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# `cmake --build BUILD --target uninstall` removes what the last install of this
# folder has put where.
add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
          -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
  VERBATIM)
