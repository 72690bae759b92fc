# Turns files into C arrays that end in a NUL byte:
#   cmake -DOUTPUT=embedded.c -DHEADER=embedded.h -DFOLDER=tool
#         -DNAMES=a.html:b.css -P embed.cmake
# a.html becomes `const char embedded_a_html[]`, which HEADER declares.
string(REPLACE ":" ";" names "${NAMES}")
set(text "// Made by embed.cmake.\n#include \"${HEADER}\"\n")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" bytes HEX)
  string(MAKE_C_IDENTIFIER "${name}" name)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(REPLACE "'\\x0a'," "'\\x0a',\n" bytes "${bytes}")  # lines as they were
  string(APPEND text "\nconst char embedded_${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
