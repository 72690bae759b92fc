// What the plug-in hip declares itself, compared with the header of a release
// of HIP.
#include "support/run.h"

#ifndef TARN_TESTS_HIP

int main(void) {
  return skip_program("HIP's header",
                      "libamdhip64-dev or a compiler of C++ is missing");
}

#else

// NOLINTNEXTLINE(bugprone-reserved-identifier): the header's name
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "cuda/hip.h"
#include "shapes.h"

// --- functions -------------------------------------------------------------

// Nothing is known of what an opaque pointer or a void * points to.
static bool agree(size_t ours, size_t theirs) {
  return ours == 0 || theirs == 0 || ours == theirs;
}

TEST(functions_take_what_they_are_given) {
  ck_assert_uint_ge(hip_functions_count, 50);
  for (size_t i = 0; i < hip_functions_count; i++) {
    const hip_function *f = &hip_functions[i];
    for (size_t p = 0; p <= HIP_PARAMETERS_MAX; p++) {
      ck_assert_msg(f->ours.sizes[p] == f->theirs.sizes[p],
                    "%s, parameter %zu: %zu bytes, not %zu", f->name, p,
                    f->ours.sizes[p], f->theirs.sizes[p]);
      ck_assert_msg(agree(f->ours.targets[p], f->theirs.targets[p]),
                    "%s, parameter %zu points to %zu bytes, not %zu", f->name,
                    p, f->ours.targets[p], f->theirs.targets[p]);
    }
  }
}

// --- numbers ---------------------------------------------------------------

#define assert_same(ours, theirs)                                     \
  ck_assert_msg((long long)(ours) == (long long)(theirs),             \
                "%s is %lld, not %lld", #theirs, (long long)(theirs), \
                (long long)(ours))

TEST(errors_have_cudas_numbers) {
  assert_same(TARN__CU_SUCCESS, hipSuccess);
  assert_same(TARN__CU_ERROR_INVALID_VALUE, hipErrorInvalidValue);
  assert_same(TARN__CU_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
  assert_same(TARN__CU_ERROR_NOT_INITIALIZED, hipErrorNotInitialized);
  assert_same(TARN__CU_ERROR_DEINITIALIZED, hipErrorDeinitialized);
  assert_same(TARN__CU_ERROR_NO_DEVICE, hipErrorNoDevice);
  assert_same(TARN__CU_ERROR_INVALID_DEVICE, hipErrorInvalidDevice);
  assert_same(TARN__CU_ERROR_INVALID_CONTEXT, hipErrorInvalidContext);
  assert_same(TARN__CU_ERROR_INVALID_HANDLE, hipErrorInvalidHandle);
  assert_same(TARN__CU_ERROR_NOT_READY, hipErrorNotReady);
  assert_same(TARN__CU_ERROR_LAUNCH_OUT_OF_RESOURCES,
              hipErrorLaunchOutOfResources);
  assert_same(TARN__CU_ERROR_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed);
  assert_same(TARN__CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              hipErrorHostMemoryAlreadyRegistered);
  assert_same(TARN__CU_ERROR_HOST_MEMORY_NOT_REGISTERED,
              hipErrorHostMemoryNotRegistered);
  assert_same(TARN__CU_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
  assert_same(TARN__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
              hipErrorStreamCaptureUnsupported);
}

TEST(flags_have_cudas_numbers) {
  assert_same(TARN__CU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
  assert_same(TARN__CU_EVENT_DISABLE_TIMING, hipEventDisableTiming);
  assert_same(TARN__CU_STREAM_CAPTURE_MODE_RELAXED,
              hipStreamCaptureModeRelaxed);
  assert_same(TARN__CU_STREAM_CAPTURE_STATUS_NONE, hipStreamCaptureStatusNone);
  assert_same(TARN__CU_MEMHOSTALLOC_PORTABLE, hipHostMallocPortable);
  assert_same(TARN__CU_MEMHOSTALLOC_DEVICEMAP, hipHostMallocMapped);
  assert_same(TARN__CU_MEMHOSTREGISTER_PORTABLE, hipHostRegisterPortable);
  assert_same(TARN__CU_MEMHOSTREGISTER_DEVICEMAP, hipHostRegisterMapped);
  assert_same(TARN__CU_MEM_ATTACH_GLOBAL, hipMemAttachGlobal);
  assert_same(TARN__CU_MEM_ALLOCATION_TYPE_PINNED, hipMemAllocationTypePinned);
  assert_same(TARN__CU_MEM_HANDLE_TYPE_NONE, hipMemHandleTypeNone);
  assert_same(TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
              hipMemHandleTypePosixFileDescriptor);
  assert_same(TARN__CU_MEM_LOCATION_TYPE_DEVICE, hipMemLocationTypeDevice);
  assert_same(TARN__CU_MEM_ACCESS_FLAGS_PROT_NONE, hipMemAccessFlagsProtNone);
  assert_same(TARN__CU_MEM_ACCESS_FLAGS_PROT_READ, hipMemAccessFlagsProtRead);
  assert_same(TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
              hipMemAccessFlagsProtReadWrite);
  assert_same(TARN__CU_MEM_ALLOC_GRANULARITY_MINIMUM,
              hipMemAllocationGranularityMinimum);
  assert_same(TARN__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
              hipMemPoolAttrReleaseThreshold);
  assert_same(TARN__CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
              hipMemPoolAttrReservedMemCurrent);
  assert_same(TARN__CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
              hipMemPoolAttrUsedMemCurrent);
  assert_same((uintptr_t)TARN__CU_STREAM_PER_THREAD,
              (uintptr_t)hipStreamPerThread);
}

// hipDeviceAttributeVirtualMemoryManagementSupported is of 5.3.
#if HIP_VERSION < TARN__HIP_VERSION(5, 3)
enum { hipDeviceAttributeVirtualMemoryManagementSupported = 89 };
#endif

TEST(attributes_of_devices_have_the_numbers_of_the_table) {
#define CHECK_ATTRIBUTE(cuda, hip, number) \
  assert_same(number, hipDeviceAttribute##hip);
  TARN__HIP_ATTRIBUTES(CHECK_ATTRIBUTE)
#undef CHECK_ATTRIBUTE
}

TEST(types_of_memory_have_the_numbers_of_the_release) {
#define CHECK_MEMORY(name, number) assert_same(number, hipMemoryType##name);
#if HIP_VERSION < TARN__HIP_VERSION(6, 0)
  TARN__HIP_MEMORY_5(CHECK_MEMORY)
#else
  TARN__HIP_MEMORY_6(CHECK_MEMORY)
#endif
#undef CHECK_MEMORY
}

// --- structs ---------------------------------------------------------------

#define assert_same_place(our_type, our_field, their_type, their_field) \
  do {                                                                  \
    assert_same(offsetof(our_type, our_field),                          \
                offsetof(their_type, their_field));                     \
    assert_same(sizeof((our_type *)NULL)->our_field,                    \
                sizeof((their_type *)NULL)->their_field);               \
  } while (0)

TEST(what_is_told_of_a_pointer_lies_where_it_is_read) {
  assert_same(sizeof(tarn__cuda_hip_pointer), sizeof(hipPointerAttribute_t));
#if HIP_VERSION < TARN__HIP_VERSION(6, 0)
  assert_same_place(tarn__cuda_hip_pointer, type, hipPointerAttribute_t,
                    memoryType);
#else
  assert_same_place(tarn__cuda_hip_pointer, type, hipPointerAttribute_t, type);
#endif
  assert_same_place(tarn__cuda_hip_pointer, device, hipPointerAttribute_t,
                    device);
  assert_same_place(tarn__cuda_hip_pointer, device_address,
                    hipPointerAttribute_t, devicePointer);
  assert_same_place(tarn__cuda_hip_pointer, host_address, hipPointerAttribute_t,
                    hostPointer);
  assert_same_place(tarn__cuda_hip_pointer, is_managed, hipPointerAttribute_t,
                    isManaged);
  assert_same_place(tarn__cuda_hip_pointer, flags, hipPointerAttribute_t,
                    allocationFlags);
}

#define assert_same_field(our_type, field, their_type) \
  assert_same_place(our_type, field, their_type, field)

TEST(rights_and_pools_are_told_as_to_cuda) {
  typedef struct CUmemAccessDesc_st ours_of_access;
  assert_same(sizeof(ours_of_access), sizeof(hipMemAccessDesc));
  assert_same_field(ours_of_access, location, hipMemAccessDesc);
  assert_same_field(ours_of_access, location.type, hipMemAccessDesc);
  assert_same_field(ours_of_access, location.id, hipMemAccessDesc);
  assert_same_field(ours_of_access, flags, hipMemAccessDesc);
  typedef struct CUmemPoolProps_st ours_of_pool;
  assert_same(sizeof(ours_of_pool), sizeof(hipMemPoolProps));
  assert_same_field(ours_of_pool, allocType, hipMemPoolProps);
  assert_same_field(ours_of_pool, handleTypes, hipMemPoolProps);
  assert_same_field(ours_of_pool, location, hipMemPoolProps);
}

// The plug-in uses no ranges of HIP 5.
#if HIP_VERSION >= TARN__HIP_VERSION(6, 0)
TEST(memory_of_ranges_is_told_as_to_cuda) {
  typedef struct CUmemAllocationProp_st ours;
  typedef hipMemAllocationProp theirs;
  assert_same(sizeof(ours), sizeof(theirs));
  assert_same_field(ours, type, theirs);
  assert_same_place(ours, requestedHandleTypes, theirs, requestedHandleType);
  assert_same_field(ours, location, theirs);
  assert_same_field(ours, win32HandleMetaData, theirs);
  assert_same_field(ours, allocFlags.compressionType, theirs);
  assert_same_field(ours, allocFlags.gpuDirectRDMACapable, theirs);
  assert_same_field(ours, allocFlags.usage, theirs);
}
#endif

#endif  // TARN_TESTS_HIP
