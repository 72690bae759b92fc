// The shapes of functions, taken from their types, which C cannot take apart.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include <hip/hip_runtime_api.h>

#include <type_traits>

extern "C" {
#include "cuda/hip.h"
}
#include "shapes.h"

namespace {

template <class T, class = void>
struct target_of {
  static constexpr size_t size = 0;
};

template <class T>
struct target_of<T *, std::enable_if_t<std::is_object_v<T> && sizeof(T) != 0>> {
  static constexpr size_t size = sizeof(T);
};

template <class F>
struct shape_of;

template <class R, class... P>
struct shape_of<R(P...)> {
  static_assert(sizeof...(P) <= HIP_PARAMETERS_MAX);
  static_assert((... && (std::is_integral_v<P> || std::is_enum_v<P> ||
                         std::is_pointer_v<P>)),
                "all are passed in registers for integers");
  static constexpr hip_shape value = {{sizeof(R), sizeof(P)...},
                                      {0, target_of<P>::size...}};
};

// In C++ the header has overloads of this one.
using from_pool = hipError_t(void **, size_t, hipMemPool_t, hipStream_t);

}  // namespace

// FUNCTION(name, type of ours) is an entry of the table, or nothing.
#define SECOND(first, second, ...) second
#define PICK(...) SECOND(__VA_ARGS__, )
#define SKIP(name, ...)
#define ENTRY(name, ...)                \
  {#name, shape_of<__VA_ARGS__>::value, \
   shape_of<PICK(TYPE_##name, decltype(name))>::value},
#define FUNCTION(name, ...) PICK(KIND_##name, ENTRY)(name, __VA_ARGS__)

#define TYPE_hipMallocFromPoolAsync ~, from_pool
#define KIND_none ~, SKIP

#define COLUMN(field, cuda, hip, arguments) \
  FUNCTION(hip, tarn__cuda_result arguments)
#define OWN(name, result, arguments) FUNCTION(name, result arguments)

const hip_function hip_functions[] = {
    // clang-format off
    TARN__CU_REQUIRED(COLUMN)
    TARN__CU_OPTIONAL(COLUMN)
    TARN__HIP_REQUIRED(OWN)

    // clang-format on
};
const size_t hip_functions_count = sizeof hip_functions / sizeof *hip_functions;
