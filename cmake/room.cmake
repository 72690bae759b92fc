# One object library per room: tarn_room(NAME file.c ...) makes tarn_NAME.
# Includes are written from the tree's own roots: "tarn/base.h", "base/os.h".
function(tarn_room name)
  add_library(tarn_${name} OBJECT ${ARGN})
  target_include_directories(tarn_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tarn_${name} PUBLIC tarn_flags)
  set_property(GLOBAL APPEND PROPERTY TARN_ROOMS tarn_${name})
endfunction()
