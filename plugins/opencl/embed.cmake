# Writes the text of kernels as a C file, an array of bytes: strings may not be
# so long. The parts keep their names in the messages of the compiler.
#
#   cmake -DOUT=FILE.c -DPARTS=A,B -P embed.cmake
string(REPLACE "," ";" parts "${PARTS}")
set(text "")
foreach(part ${parts})
  get_filename_component(name ${part} NAME)
  file(READ ${part} content HEX)
  string(HEX "#line 1 \"${name}\"\n" line)
  string(APPEND text "${line}${content}")
endforeach()
string(REGEX REPLACE "(................................)" "\\1\n" text "${text}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," text "${text}")
file(WRITE ${OUT}
  "#include \"opencl/program.h\"\n\n"
  "const char tarn__opencl_source[] = {\n${text}\n};\n"
  "const size_t tarn__opencl_source_size = sizeof tarn__opencl_source;\n")
