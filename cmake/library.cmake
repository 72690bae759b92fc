# libtarn.so and libtarn.a out of all rooms.
get_property(rooms GLOBAL PROPERTY TARN_ROOMS)
set(objects)
foreach(room IN LISTS rooms)
  list(APPEND objects $<TARGET_OBJECTS:${room}>)
endforeach()

set(version_script ${PROJECT_SOURCE_DIR}/src/tarn.map)
add_library(tarn SHARED ${objects})
set_target_properties(tarn PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${version_script})
# nodelete: worker threads and fork handlers would outlive a dlclose.
target_link_options(tarn PRIVATE
  -Wl,--version-script=${version_script} -Wl,-z,nodelete)
if(NOT TARN_SANITIZE)
  target_link_options(tarn PRIVATE -Wl,--no-undefined)
endif()

add_library(tarn_static STATIC ${objects})
set_target_properties(tarn_static PROPERTIES OUTPUT_NAME tarn)

foreach(library tarn tarn_static)
  target_include_directories(${library} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${library}
    PUBLIC Threads::Threads ${CMAKE_DL_LIBS}
    PRIVATE $<BUILD_INTERFACE:tarn_flags>)
  add_library(tarn::${library} ALIAS ${library})
endforeach()
