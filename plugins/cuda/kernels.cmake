# The kernels as a fatbin that the module carries, where there is an nvcc that
# works: -DTARN_NVCC=FILE names one, and an empty one asks for none. A driver
# takes what is for its GPU, or translates what is for a virtual one before it:
# the last architecture is there as PTX too.
#
# Sets TARN_CUDA_IMAGE to the source with the image, or no_image.c.
set(TARN_CUDA_IMAGE no_image.c)
find_program(TARN_NVCC nvcc
  HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /opt/cuda
  PATH_SUFFIXES bin DOC "Compiles the kernels of the plug-in cuda")

# tarn_nvcc(OUT): the options with which this nvcc makes a fatbin; empty if it
# cannot.
function(tarn_nvcc out)
  set(${out} "" PARENT_SCOPE)
  execute_process(COMMAND ${TARN_NVCC} --list-gpu-code
    OUTPUT_VARIABLE known ERROR_QUIET RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    return()
  endif()
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  set(options -std=c++17 -fmad=false -fatbin -Xfatbin -compress-all)
  foreach(wanted 75 80 90)
    if(wanted IN_LIST known)
      list(APPEND options -gencode arch=compute_${wanted},code=sm_${wanted})
      set(last ${wanted})
    endif()
  endforeach()
  if(NOT DEFINED last)
    return()
  endif()
  list(APPEND options -gencode arch=compute_${last},code=compute_${last})

  # Its compiler for the host may be missing, or too new for it.
  set(sample ${CMAKE_CURRENT_BINARY_DIR}/sample)
  file(WRITE ${sample}.cu "extern \"C\" __global__ void sample() {}\n")
  execute_process(
    COMMAND ${TARN_NVCC} ${options} -o ${sample}.fatbin ${sample}.cu
    OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0)
    set(${out} "${options}" PARENT_SCOPE)
  endif()
endfunction()

if(TARN_NVCC)
  # Asked once for each nvcc.
  if(NOT TARN_NVCC_ASKED STREQUAL TARN_NVCC)
    tarn_nvcc(options)
    set(TARN_NVCC_OPTIONS "${options}" CACHE INTERNAL "")
    set(TARN_NVCC_ASKED "${TARN_NVCC}" CACHE INTERNAL "")
  endif()
  if(TARN_NVCC_OPTIONS)
    set(TARN_CUDA_IMAGE ${CMAKE_CURRENT_BINARY_DIR}/image.c)
    add_custom_command(OUTPUT rows.fatbin
      COMMAND ${TARN_NVCC} ${TARN_NVCC_OPTIONS} -o rows.fatbin
        ${CMAKE_CURRENT_SOURCE_DIR}/rows.cu
      DEPENDS rows.cu elements.cuh rows_args.h COMMENT "Compiling kernels by nvcc" VERBATIM)
    add_custom_command(OUTPUT image.c
      COMMAND ${CMAKE_COMMAND} -DOUT=${TARN_CUDA_IMAGE} -DIMAGE=rows.fatbin
        -P ${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake
      DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/rows.fatbin embed.cmake VERBATIM)
  else()
    message(STATUS "${TARN_NVCC} makes no fatbin: the plug-in cuda has no "
      "kernels")
  endif()
else()
  message(STATUS "No nvcc: the plug-in cuda has no kernels")
endif()
