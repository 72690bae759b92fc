# Writes an image of kernels as a C file.
#
#   cmake -DOUT=FILE.c -DIMAGE=FILE -P embed.cmake
file(READ ${IMAGE} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n"
  bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUT}
  "#include \"cuda/image.h\"\n\n"
  "_Alignas(16) const unsigned char tarn__cuda_image[] = {\n${bytes}\n};\n"
  "const size_t tarn__cuda_image_size = sizeof tarn__cuda_image;\n")
