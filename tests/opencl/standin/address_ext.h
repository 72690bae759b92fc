// address_ext.h - cl_ext_buffer_device_address, revision 1.0.2, where the
// distribution's headers are older than the extension.
//
// CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT is a property of a buffer, with a cl_bool.
// CL_MEM_DEVICE_ADDRESS_EXT asks such a buffer for its addresses, one for each
// device of the context, and any other for CL_INVALID_OPERATION.
#ifndef TARN_TESTS_OPENCL_STANDIN_ADDRESS_EXT_H_
#define TARN_TESTS_OPENCL_STANDIN_ADDRESS_EXT_H_

#ifndef cl_ext_buffer_device_address
#define cl_ext_buffer_device_address 1

typedef cl_ulong cl_mem_device_address_ext;

#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
#define CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT 0x5002

extern CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgDevicePointerEXT(
    cl_kernel kernel, cl_uint arg_index, cl_mem_device_address_ext arg_value);
#endif

#endif  // TARN_TESTS_OPENCL_STANDIN_ADDRESS_EXT_H_
